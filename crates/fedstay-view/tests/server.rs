//! The server as a stranger on the network sees it: raw requests over a socket.

use fedstay::AgentId;
use fedstay::ledger::Ledger;
use fedstay_view::View;
use serde_json::Value;
use sha2::Digest;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const HEADER: &str = r#"{"schema":"fedstay.rounds/1","version":"0.1.0","rule":"<script>alert(1)</script>","on":"x","seed":0,"rounds":9,"agents":[{"id":0,"epsilon":0.5},{"id":1,"epsilon":0.5}]}"#;

fn line(round: u32) -> String {
    format!(
        r#"{{"round":{round},"agents":[0,1],"loss":[1.0,2.0],"d":[],"case":null,"left":[],"step_size":0.1,"step_norm":0.1,"stop":null}}"#
    )
}

fn run(folder: &Path, lines: &[&str]) {
    run_of(HEADER, folder, lines);
}

/// A run whose agents have names.
fn named_run(folder: &Path, lines: &[&str]) {
    let named = HEADER.replace(r#"{"id":0,"#, r#"{"id":0,"name":"St Mary","#);
    let named = named.replace(r#"{"id":1,"#, r#"{"id":1,"name":"NSW","#);
    run_of(&named, folder, lines);
}

fn run_of(header: &str, folder: &Path, lines: &[&str]) {
    std::fs::create_dir_all(folder).unwrap();
    let mut text = format!("{header}\n");
    lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    std::fs::write(folder.join("rounds.jsonl"), text).unwrap();
}

/// Starts a server; it ends with the test's process.
fn serve(folders: Vec<PathBuf>, host: &str) -> (SocketAddr, String) {
    let view = View { folders, host: host.parse::<IpAddr>().unwrap(), port: 0 };
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || view.serve(move |url| tell.send(url.to_owned()).unwrap()));
    let url = told.recv_timeout(Duration::from_secs(10)).unwrap();
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let port = address.rsplit_once(':').unwrap().1.parse().unwrap();
    (SocketAddr::new("127.0.0.1".parse().unwrap(), port), format!("/{path}"))
}

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

fn request(address: SocketAddr, method: &str, path: &str, headers: &[&str]) -> Answer {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let extra: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    write!(socket, "{method} {path} HTTP/1.1\r\nConnection: close\r\n{extra}\r\n").unwrap();
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head, body: bytes[end + 4..].to_vec() }
}

fn get(address: SocketAddr, path: &str) -> Answer {
    request(address, "GET", path, &["Host: localhost"])
}

/// What the page is told about a run, except its series.
fn detail(address: SocketAddr, id: &str) -> Value {
    let body = get(address, &format!("/api/whole?ids={id}")).body;
    let length = u32::from_le_bytes(body[..4].try_into().unwrap()) as usize;
    serde_json::from_slice(&body[8..8 + length]).unwrap()
}

fn ids(address: SocketAddr) -> Vec<(String, String)> {
    let runs = get(address, "/api/runs").json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    runs["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| (text(&run["name"]), text(&run["id"])))
        .collect()
}

fn id(address: SocketAddr, name: &str) -> String {
    ids(address).into_iter().find(|(known, _)| known == name).unwrap().1
}

#[test]
fn every_answer_has_the_strict_policy() {
    let folder = tempfile::tempdir().unwrap();
    run(&folder.path().join("a"), &[&line(1)]);
    let (address, _) = serve(vec![folder.path().into()], "127.0.0.1");
    for path in
        ["/", "/page/page.js", "/page/style.css", "/api/runs", "/api/whole?ids=", "/nowhere"]
    {
        let answer = get(address, path);
        assert!(
            answer.head.contains("content-security-policy: default-src 'none'; script-src 'self'"),
            "{path}"
        );
        assert!(!answer.head.contains("unsafe-inline"));
        for header in [
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
        ] {
            assert!(answer.head.contains(header), "{path}: {header}");
        }
    }
    assert!(get(address, "/page/app.js").head.contains("text/javascript"));
    let posted = request(address, "POST", "/api/runs", &["Host: localhost"]);
    assert_eq!((posted.status, &posted.body[..]), (405, &b"only GET and HEAD\n"[..]));
    let head = request(address, "HEAD", "/api/runs", &["Host: localhost"]);
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn a_page_that_points_its_name_here_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (address, _) = serve(vec![folder.path().into()], "127.0.0.1");
    assert_eq!(request(address, "GET", "/api/runs", &["Host: 127.0.0.1:8765"]).status, 200);
    for host in [
        "Host: evil.example",
        "Host: localhost.evil.example",
        "Host: evil.example\r\nHost: localhost",
        "Host: [::1].evil.example",
        "Host: [::1]evil",
        "Host: localhost:evil.example",
    ] {
        let status = request(address, "GET", "/api/runs", &[host]).status;
        assert!(status == 403 || status == 400, "{host}: {status}");
    }
    // The host that is named with the path counts, whatever the header says.
    let whole = |host: &str| format!("http://{host}/api/runs");
    let ask = |path: &str| request(address, "GET", path, &["Host: localhost"]).status;
    assert_eq!((ask(&whole("evil.example")), ask(&whole("localhost:80"))), (403, 200));
}

#[test]
fn any_number_of_streams_of_events_leaves_the_page_free_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let (address, _) = serve(vec![folder.path().into()], "127.0.0.1");
    let streams: Vec<TcpStream> = (0..230)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            stream
        })
        .collect();
    assert_eq!(get(address, "/api/runs").status, 200);
    // The oldest has ended, and its connection with it; the newest has not.
    let limit = Some(Duration::from_secs(10));
    let mut text = String::new();
    streams[0].set_read_timeout(limit).unwrap();
    (&streams[0]).read_to_string(&mut text).unwrap();
    assert!(text.contains("200 OK") && text.ends_with("0\r\n\r\n"), "{text}");
    let mut newest = BufReader::new(&streams[229]).lines();
    streams[229].set_read_timeout(limit).unwrap();
    assert!(newest.next().unwrap().unwrap().contains("200"));
    run(&folder.path().join("a"), &[&line(1)]);
    assert!(newest.map(Result::unwrap).take(200).any(|line| line.contains("\"kind\":\"runs\"")));
}

#[test]
fn a_bad_line_at_the_end_does_not_change_how_many_rounds_the_list_says() {
    let folder = tempfile::tempdir().unwrap();
    for (name, last) in [("low", line(2)), ("broken", r#"{"round":77,"#.to_owned())] {
        run(&folder.path().join(name), &[&line(1), &line(40), &last]);
    }
    let (address, _) = serve(vec![folder.path().into()], "127.0.0.1");
    for run in get(address, "/api/runs").json()["runs"].as_array().unwrap() {
        assert_eq!(run["rounds"], 40, "{}", run["name"]);
    }
}

#[test]
fn every_state_of_a_folder_has_its_own_word_tone_and_next_command() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let config = "[rule]\nkind = \"fedavg\"\n";
    let grown = line(9).replace("[1.0,2.0]", "[1e6,8e6]");
    let lines: [(&str, Vec<String>); 4] = [
        ("waiting", vec![]),
        ("running", vec![line(1)]),
        ("stopped", vec![line(1), line(2)]),
        ("diverged", vec![line(1), grown]),
    ];
    for (name, lines) in &lines {
        run(&root.join(name), &lines.iter().map(String::as_str).collect::<Vec<_>>());
        std::fs::write(root.join(name).join("config.toml"), config).unwrap();
    }
    std::fs::create_dir(root.join("garbage")).unwrap();
    std::fs::write(root.join("garbage/rounds.jsonl"), "\u{1}\u{2} what\n").unwrap();
    std::fs::write(root.join("garbage/config.toml"), config).unwrap();
    std::fs::write(root.join("stopped/checkpoint"), "x").unwrap();
    for name in ["stopped", "diverged"] {
        let rounds =
            std::fs::File::options().append(true).open(root.join(name).join("rounds.jsonl"));
        let old = std::time::SystemTime::now() - Duration::from_secs(90);
        rounds.unwrap().set_modified(old).unwrap();
    }
    let (address, _) = serve(vec![root.into()], "127.0.0.1");
    let runs = get(address, "/api/runs").json();
    for (name, head, tone, command) in [
        ("waiting", "Waiting", "open", None),
        ("running", "Running", "open", None),
        ("stopped", "Stopped", "warn", Some("--resume")),
        ("diverged", "Diverged", "bad", Some("--set step_size=SMALLER")),
        ("garbage", "Unreadable", "warn", Some("garbage/config.toml --out")),
    ] {
        let told = detail(address, &id(address, name));
        assert_eq!(told["words"]["head"], head, "{name}");
        assert_eq!(told["words"]["tone"], tone, "{name}");
        let next = told["next"]["command"].as_str();
        assert_eq!(next.is_some(), command.is_some(), "{name}: {next:?}");
        assert!(command.is_none_or(|part| next.unwrap().contains(part)), "{name}: {next:?}");
        // The list and the page say the same.
        let listed = runs["runs"].as_array().unwrap().iter().find(|run| run["name"] == name);
        assert_eq!(listed.unwrap()["status"], told["status"], "{name}");
        assert_eq!(told["status"].as_str().unwrap(), head.to_lowercase(), "{name}");
    }
    assert_ne!(runs["first"], id(address, "garbage").as_str(), "what is shown first can be shown");
}

#[test]
fn a_margin_is_that_of_the_last_exact_loss_and_not_of_a_lower_bound() {
    let folder = tempfile::tempdir().unwrap();
    let header = HEADER.replace("0.5", "0.1");
    let bound = line(346).replace("[1.0,2.0]", "[0.115,0.115]");
    let lines = [
        line(345).replace("[1.0,2.0]", "[0.57,null]"),
        bound.replace(r#""d":[]"#, r#""at_least":[0,1],"d":[]"#),
    ];
    let place = folder.path().join("a");
    run(&place, &[]);
    std::fs::write(place.join("rounds.jsonl"), format!("{header}\n{}\n", lines.join("\n")))
        .unwrap();
    let (address, _) = serve(vec![folder.path().into()], "127.0.0.1");
    let agents = detail(address, &id(address, "a"))["agents"].clone();
    assert_eq!((&agents[0]["loss"], &agents[0]["loss_round"]), (&0.57.into(), &345.into()));
    assert!((agents[0]["margin"].as_f64().unwrap() - 0.47).abs() < 1e-9, "{}", agents[0]);
    assert_eq!((&agents[1]["loss"], &agents[1]["source"]), (&0.115.into(), &"at-least".into()));
}

#[test]
fn other_machines_need_the_token() {
    let folder = tempfile::tempdir().unwrap();
    run(&folder.path().join("a"), &[&line(1)]);
    let (address, path) = serve(vec![folder.path().into()], "0.0.0.0");
    assert!(path.starts_with("/?token=") && path.len() == 8 + 32, "{path}");
    for path in [
        "/",
        "/api/runs",
        "/api/events",
        "/page/app.js",
        "/?token=",
        "/?token=00000000000000000000000000000000",
    ] {
        assert_eq!(get(address, path).status, 401, "{path}");
    }
    let answer = get(address, &path);
    assert_eq!(answer.status, 200);
    let cookie = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
    let kept = format!("Cookie: other=1; {}", cookie.split(';').next().unwrap());
    assert_eq!(request(address, "GET", "/api/runs", &["Host: machine:1", &kept]).status, 200);
    let wrong = kept.replace(&path[8..], &"0".repeat(32));
    assert_eq!(request(address, "GET", "/api/runs", &["Host: machine:1", &wrong]).status, 401);
}

#[cfg(unix)]
#[test]
fn nothing_outside_of_the_folders_is_ever_served() {
    use std::os::unix::fs::symlink;
    let temporary = tempfile::tempdir().unwrap();
    let (runs, outside) = (temporary.path().join("runs"), temporary.path().join("outside"));
    std::fs::create_dir_all(&outside).unwrap();
    let secret = HEADER.replace("\"on\":\"x\"", "\"on\":\"SECRET\"");
    std::fs::write(outside.join("rounds.jsonl"), format!("{secret}\n{}\n", line(1))).unwrap();
    std::fs::write(outside.join("config.toml"), "SECRET = 1\n").unwrap();
    run(&runs.join("good"), &[&line(1)]);
    symlink(&outside, runs.join("folder-link")).unwrap();
    std::fs::create_dir(runs.join("file-link")).unwrap();
    symlink(outside.join("rounds.jsonl"), runs.join("file-link/rounds.jsonl")).unwrap();
    symlink(outside.join("config.toml"), runs.join("good/config.toml")).unwrap();
    symlink(outside.join("config.toml"), runs.join("good/summary.json")).unwrap();
    let (address, _) = serve(vec![runs], "127.0.0.1");

    let names: Vec<String> = ids(address).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let mut paths: Vec<String> = [
        "/page/../../../../etc/passwd",
        "/page/..%2f..%2f..%2fetc%2fpasswd",
        "/page/%2e%2e/%2e%2e/etc/passwd",
        "/page//etc/passwd",
        "/api/runs/..%2f..%2foutside",
        "/api/runs/../../outside/rounds.jsonl",
        "/api/runs/%00",
        "/rounds.jsonl",
        "//etc/passwd",
    ]
    .map(str::to_owned)
    .to_vec();
    for path in &paths {
        let status = get(address, path).status;
        assert!(status == 404 || status == 400, "{path}: {status}");
    }
    paths.push("/api/runs".to_owned());
    for (_, id) in ids(address) {
        paths.push(format!("/api/whole?ids={id}"));
        paths.extend(["series", "landscape"].map(|what| format!("/api/runs/{id}/{what}")));
    }
    for path in &paths {
        let body = String::from_utf8_lossy(&get(address, path).body).into_owned();
        assert!(!body.contains("SECRET") && !body.contains("root:"), "{path}");
    }
    let good = detail(address, &id(address, "good"));
    assert!(good["config"].is_null());
    let trouble = good["trouble"].to_string();
    assert!(trouble.contains("config.toml is a link"), "{trouble}");
    assert!(trouble.contains("summary.json is a link"), "{trouble}");
    assert_eq!(good["rounds"], 1);
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let lines = [&line(1), "{\"round\":2, oops", &line(3), "\u{fffd}\u{0}", &line(5)];
    run(&folder.path().join("a"), &lines.map(|line| line as &str));
    std::fs::write(folder.path().join("a/summary.json"), "[1, 2").unwrap();
    // A configuration that asks for a problem of any size is not built.
    let config = "seed = 0\n[problem]\nkind = \"huber\"\nagents = 1000000000\ndim = 1000000000\n";
    std::fs::write(folder.path().join("a/config.toml"), config).unwrap();
    std::fs::create_dir(folder.path().join("b")).unwrap();
    std::fs::write(folder.path().join("b/rounds.jsonl"), vec![0xff; 100_000]).unwrap();
    let (address, _) = serve(vec![folder.path().into()], "127.0.0.1");

    let since = Instant::now();
    let run = detail(address, &id(address, "a"));
    assert!(since.elapsed() < Duration::from_secs(5));
    assert_eq!(run["rounds"], 3);
    let numbers: Vec<&Value> =
        run["trouble"].as_array().unwrap().iter().map(|one| &one["line"]).collect();
    assert!(
        numbers.contains(&&Value::from(3)) && numbers.contains(&&Value::from(5)),
        "{numbers:?}"
    );
    assert_eq!(run["troubles"], 3, "{}", run["trouble"]);
    // It is sent as text; the page makes a text node of it.
    assert_eq!(run["listing"]["rule"], "<script>alert(1)</script>");
    let broken = detail(address, &id(address, "b"));
    // With a damaged summary it is not over, in the list as on the page.
    let runs = get(address, "/api/runs").json();
    let listed = runs["runs"].as_array().unwrap().iter().find(|one| one["name"] == "a").unwrap();
    assert_eq!((&listed["status"], &run["status"]), (&"running".into(), &"running".into()));
    assert_eq!(broken["rounds"], 0);
}

/// Where a run ended, in its last round and by its summary.
const SUMMARY: &str = r#"{"verdict":"harmful","stop":"nobody-left","rounds":2,"behaviour":"threshold",
    "left":[{"agent":0,"round":2}],"loss":{"min":0.25,"mean":1.375,"max":2.5},
    "accuracy":{"min":0.125,"mean":0.5,"max":0.875},"population":{"loss":1.0,"accuracy":0.375},
    "agents":[{"id":0,"epsilon":0.5,"loss":2.5,"accuracy":0.125,"left":2,"behaviour":"patient"},
              {"id":1,"epsilon":0.5,"loss":0.25,"accuracy":0.875,"left":null}],
    "warnings":["the losses hardly moved"]}"#;

#[test]
fn a_finished_run_is_told_by_its_summary_and_in_words() {
    let folder = tempfile::tempdir().unwrap();
    run(&folder.path().join("a"), &[&line(1), &line(2)]);
    run(&folder.path().join("b"), &[&line(1)]);
    std::fs::write(folder.path().join("a/summary.json"), SUMMARY).unwrap();
    let (address, _) = serve(vec![folder.path().into()], "127.0.0.1");
    let told = detail(address, &id(address, "a"));
    let summary: Value = serde_json::from_str(SUMMARY).unwrap();
    for (track, part, which) in [
        ("loss_mean", "loss", "mean"),
        ("loss_worst", "loss", "max"),
        ("accuracy_mean", "accuracy", "mean"),
        ("accuracy_worst", "accuracy", "min"),
        ("accuracy_population", "population", "accuracy"),
    ] {
        assert_eq!(told["delivered"][track], summary[part][which], "{track}");
    }
    for (agent, of) in summary["agents"].as_array().unwrap().iter().zip(0..) {
        let delivered = &told["agents"][of]["delivered"];
        assert_eq!(
            (&delivered["loss"], &delivered["measures"]["accuracy"]),
            (&agent["loss"], &agent["accuracy"])
        );
    }
    assert_eq!(told["agents"][0]["delivered"]["behaviour"], "patient");
    assert_eq!(told["agents"][1]["delivered"]["behaviour"], "threshold");
    assert_eq!(told["agents"][1]["delivered"]["content"], true);
    let words = &told["words"];
    assert_eq!((&words["head"], &words["tone"]), (&Value::from("Harmful"), &Value::from("bad")));
    let wanted = "1 of 2 left, and the delivered model fails 1 agent, which left and keeps the model of its \
                  round; 1 of 2 content.";
    assert_eq!(words["text"], wanted);
    assert_eq!(words["stop"], "it ended because everyone had left");
    assert_eq!(told["listing"]["brief"]["text"], "harmful, 1 of 2 content");
    assert_eq!(told["summary"]["warnings"], summary["warnings"]);

    let other = detail(address, &id(address, "b"));
    assert_eq!(other["words"]["head"], "Running");
    assert_eq!(other["words"]["text"], "Nobody is about to leave; all are still in.");
    assert!(other["delivered"].is_null() && other["agents"][0]["delivered"].is_null());
}

#[test]
fn a_finished_run_whose_files_were_changed_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a");
    run(&place, &[&line(1), &line(2)]);
    std::fs::write(place.join("config.toml"), "[rule]\nkind = \"fedavg\"\n").unwrap();
    std::fs::write(place.join("summary.json"), SUMMARY).unwrap();
    let files = ["config.toml", "rounds.jsonl", "summary.json"];
    let sum = |name: &str| {
        let hash = sha2::Sha256::digest(std::fs::read(place.join(name)).unwrap());
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{hash}  {name}\n")
    };
    std::fs::write(place.join("SHA256SUMS"), files.map(sum).concat()).unwrap();
    let (address, _) = serve(vec![folder.path().into()], "127.0.0.1");
    let id = id(address, "a");
    let warnings = || detail(address, &id)["summary"]["warnings"].clone();
    let own = serde_json::from_str::<Value>(SUMMARY).unwrap()["warnings"].clone();
    assert_eq!(warnings(), own, "nothing changed");
    for (name, from, to) in [
        ("summary.json", "0.375", "0.875"),
        ("rounds.jsonl", "[1.0,2.0]", "[1.0,3.0]"),
        ("config.toml", "fedavg", "retain"),
    ] {
        let path = place.join(name);
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, whole.replacen(from, to, 1)).unwrap();
        let said = |wanted: Option<&str>| {
            let since = Instant::now();
            loop {
                let now = warnings();
                let first = now[0].as_str().unwrap();
                let told = first.contains("changed since").then_some(first);
                match wanted {
                    Some(name) if told.is_some_and(|told| told.contains(name)) => break,
                    None if told.is_none() => break,
                    _ => assert!(since.elapsed() < Duration::from_secs(10), "{name}: {now}"),
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        };
        said(Some(name));
        assert_eq!(warnings()[1], own[0], "its own warnings are still there");
        std::fs::write(&path, whole).unwrap();
        said(None);
    }
}

#[test]
fn several_runs_are_told_in_one_answer_and_the_first_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["run-10", "run-9"] {
        run(&folder.path().join(name), &[&line(1), &line(2)]);
        std::fs::write(folder.path().join(name).join("summary.json"), SUMMARY).unwrap();
    }
    let (address, _) = serve(vec![folder.path().into()], "127.0.0.1");
    let (ten, nine) = (id(address, "run-10"), id(address, "run-9"));
    // All are over, so it is the first by name, in which 9 comes before 10.
    assert_eq!(get(address, "/api/runs").json()["first"], nine.as_str());
    let body = get(address, &format!("/api/whole?ids={ten},0123456789abcdef,{nine}")).body;
    let mut rest = body.as_slice();
    for known in [Some(&ten), None, Some(&nine)] {
        let lengths = [0, 4].map(|at| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap()));
        let [told, series] = lengths.map(|length| length as usize);
        rest = &rest[8..];
        let Some(known) = known else {
            assert_eq!((told, series), (0, 0), "a run that is not there");
            continue;
        };
        let one: Value = serde_json::from_slice(&rest[..told]).unwrap();
        rest = &rest[told.next_multiple_of(4)..];
        let mut alone = detail(address, known);
        // The time of the asking is in it.
        alone["times"] = one["times"].clone();
        assert_eq!(one, alone);
        assert_eq!(rest[..series], get(address, &format!("/api/runs/{known}/series")).body);
        rest = &rest[series.next_multiple_of(4)..];
    }
    assert!(rest.is_empty());
    // A run that is under way comes first, whatever it is called.
    run(&folder.path().join("zz"), &[&line(1)]);
    let since = Instant::now();
    while ids(address).len() < 3 && since.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(get(address, "/api/runs").json()["first"], id(address, "zz").as_str());
}

#[test]
fn what_agents_gave_and_got_is_the_summarys_and_before_it_the_sum_of_the_rounds() {
    let folder = tempfile::tempdir().unwrap();
    let worth = |round: u32, given: &str| {
        let worth = format!(r#","worth":{{"agents":[0,1],"given":{given},"got":[0.5,-1.0]}}}}"#);
        format!("{}{worth}", line(round).strip_suffix('}').unwrap())
    };
    let lines = [worth(1, "[0.25,0.0]"), worth(2, "[0.5,-2.0]")];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for name in ["live", "over", "without"] {
        named_run(&folder.path().join(name), if name == "without" { &[] } else { &lines });
    }
    let mut summary: Value = serde_json::from_str(SUMMARY).unwrap();
    summary["worth"] = serde_json::json!({ "methods": ["help", "core"], "agents": [0, 1],
        "help": [[1.0, -0.5], [0.25, 2.0]], "steps": [1, 1], "core": { "excess": 0.5, "group": [1] } });
    summary["agents"][0]["worth"] = serde_json::json!({ "given": 0.25, "got": -0.5 });
    summary["agents"][1]["worth"] = serde_json::json!({ "given": -0.5, "got": 0.25 });
    std::fs::write(folder.path().join("over/summary.json"), summary.to_string()).unwrap();
    let (address, _) = serve(vec![folder.path().into()], "127.0.0.1");
    let told = |name: &str| detail(address, &id(address, name));
    let live = &told("live")["worth"];
    assert_eq!((&live["live"], &live["help"]), (&Value::from(true), &Value::Array(vec![])));
    let nsw =
        serde_json::json!({ "id": 1, "called": "NSW", "brief": "NSW", "given": -2.0, "got": -2.0 });
    assert_eq!(live["each"][1], nsw);
    let over = told("over");
    assert_eq!(over["worth"]["help"], summary["worth"]["help"]);
    assert_eq!(over["worth"]["each"][0]["given"], 0.25);
    assert_eq!(over["worth"]["agents"][0]["called"], "St Mary");
    let core = over["worth"]["core"].as_str().unwrap();
    assert!(core.contains("by at least 0.500") && core.ends_with("has NSW."), "{core}");
    assert!(over["summary"]["worth"].is_null(), "it is sent once");
    assert!(told("without")["worth"].is_null());
}

#[test]
fn no_word_of_the_page_says_the_number_of_an_agent_with_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let lines = [
        r#"{"round":1,"agents":[0],"loss":[1.0],"d":[0],"left":[1],"case":1,"step_size":0.1,"step_norm":0.1}"#,
        r#"{"round":2,"agents":[],"loss":[],"d":[],"case":1,"faults":[[0,"no answer"]],"step_size":0.1,"step_norm":0.1}"#,
    ];
    let gram =
        r#"{"round":1,"agents":[0],"loss":[1.0],"gram":[1.0],"slope":[0.0],"step_norm":0.1}"#;
    let places = [folder.path().join("named"), folder.path().join("plain")];
    named_run(&places[0], &lines);
    run(&places[1], &lines);
    let config =
        "step_size = 0.1\n[problem]\nkind = \"observation-3\"\n[rule]\nkind = \"ada-gd\"\n";
    for place in &places {
        std::fs::write(place.join("config.toml"), config).unwrap();
        let text = format!("{{\"schema\":\"fedstay.gram/1\"}}\n{gram}\n");
        std::fs::write(place.join("gram.jsonl"), text).unwrap();
    }
    let (address, _) = serve(vec![folder.path().into()], "127.0.0.1");
    let told = |name: &str| detail(address, &id(address, name));
    let (named, plain) = (told("named"), told("plain"));
    let says = |told: &Value| format!("{told}").to_lowercase().contains("agent 1");
    assert!(says(&plain) && !says(&named), "{named:#}");
    let called = |told: &Value, place: usize| {
        (told["agents"][place]["called"].clone(), told["agents"][place]["brief"].clone())
    };
    assert_eq!(called(&named, 1), ("NSW".into(), "NSW".into()));
    assert_eq!(called(&plain, 1), ("agent 1".into(), "1".into()));
    let advice = named["theory"]["findings"]["advice"][0].as_str().unwrap();
    assert!(advice.starts_with("NSW is content with the start"), "{advice}");
}

#[test]
fn what_is_counted_about_an_agent_is_what_its_summary_has() {
    let lines = [
        r#"{"round":1,"agents":[0,1],"loss":[1.0,2.0],"d":[0],"case":1,"step_size":0.1,"step_norm":0.1}"#,
        r#"{"round":2,"agents":[0],"loss":[0.9],"d":[0],"case":1,"faults":[[1,"no answer"]],"step_size":0.1,"step_norm":0.1,"flags":[{"agent":0,"doubt":"implausible","by":200.0}]}"#,
        r#"{"round":3,"agents":[1],"loss":[1.5],"left":[0],"case":2,"step_size":0.1,"step_norm":0.1}"#,
        r#"{"round":5,"agents":[0,1],"loss":[0.6,1.4],"returned":[0],"case":2,"step_size":0.1,"step_norm":0.1}"#,
        r#"{"round":6,"agents":[0],"loss":[0.6],"left":[1],"case":2,"step_size":0.1,"step_norm":0.1}"#,
    ];
    let folder = tempfile::tempdir().unwrap();
    run(&folder.path().join("a"), &lines);
    let (address, _) = serve(vec![folder.path().into()], "127.0.0.1");
    let told = detail(address, &id(address, "a"));
    let mut ledger = Ledger::default();
    lines.iter().for_each(|line| ledger.add(&serde_json::from_str(line).unwrap()));
    for of in 0..2 {
        let entry = serde_json::to_value(ledger.agent(AgentId(of)).unwrap()).unwrap();
        let row = &told["agents"][of as usize];
        for (name, counted) in entry.as_object().unwrap() {
            assert_eq!(row[name], *counted, "{name} of agent {of}");
        }
    }
    let (first, second) = (&told["agents"][0], &told["agents"][1]);
    assert_eq!((&first["moved"], &first["rounds_in_d"]), (&Value::from(2), &Value::from(2)));
    assert_eq!((&first["left"], &first["returned"]), (&Value::Null, &Value::from(5)));
    assert_eq!((&second["left"], &second["fault"]), (&Value::from(6), &Value::from("no answer")));
    let left = serde_json::json!([{ "agent": 0, "round": 3 }, { "agent": 1, "round": 6 }]);
    assert_eq!(told["left"], left);
}

#[test]
fn a_run_that_grows_and_one_that_begins_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let growing = folder.path().join("a");
    run(&growing, &[&line(1)]);
    let (address, _) = serve(vec![folder.path().into()], "127.0.0.1");
    let a = id(address, "a");
    assert_eq!(detail(address, &a)["rounds"], 1);

    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut events = BufReader::new(stream).lines();
    assert!(events.next().unwrap().unwrap().contains("200"));
    while !events.next().unwrap().unwrap().is_empty() {}

    let mut file =
        std::fs::File::options().append(true).open(growing.join("rounds.jsonl")).unwrap();
    let text = line(2);
    // Half a line says nothing; the other half does.
    file.write_all(&text.as_bytes()[..20]).unwrap();
    std::thread::sleep(Duration::from_millis(400));
    file.write_all(format!("{}\n", &text[20..]).as_bytes()).unwrap();
    let told = |events: &mut dyn Iterator<Item = std::io::Result<String>>, what: &str| {
        events.map(Result::unwrap).take(200).any(|line| line.contains(what))
    };
    assert!(told(&mut events, "\"rounds\":2"));
    let run_a = detail(address, &a);
    assert_eq!((&run_a["rounds"], &run_a["troubles"]), (&Value::from(2), &Value::from(0)));

    run(&folder.path().join("later/b"), &[&line(1)]);
    assert!(told(&mut events, "\"kind\":\"runs\""));
    assert_eq!(ids(address).len(), 2);

    // Resumed: another file under the same name, with fewer rounds.
    let new = growing.join("rounds.tmp");
    std::fs::write(&new, format!("{HEADER}\n{}\n", line(1))).unwrap();
    std::fs::rename(&new, growing.join("rounds.jsonl")).unwrap();
    assert!(told(&mut events, "\"rounds\":1"));
    let again = detail(address, &a);
    assert_eq!(again["rounds"], 1);
    assert_ne!(again["revision"], run_a["revision"]);
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let folders = vec![PathBuf::from("/nowhere/at/all")];
    let view = View { folders, host: "127.0.0.1".parse().unwrap(), port: 0 };
    let error = view.serve(|_| ()).unwrap_err().to_string();
    assert!(error.contains("/nowhere/at/all"), "{error}");
}

#[test]
fn settings_that_all_runs_share_are_sent_once() {
    let folder = tempfile::tempdir().unwrap();
    for (name, q) in [("a", 0.5), ("b", 0.9)] {
        let place = folder.path().join(name);
        run(&place, &[&line(1)]);
        let config = format!("seed = 3\n[rule]\nkind = \"retain\"\n[partition]\nq = {q}\n");
        std::fs::write(place.join("config.toml"), config).unwrap();
    }
    let (address, _) = serve(vec![folder.path().into()], "127.0.0.1");
    let runs = get(address, "/api/runs").json();
    assert_eq!(runs["common"], serde_json::json!({ "rule.kind": "retain", "seed": 3 }));
    let own: Vec<&Value> =
        runs["runs"].as_array().unwrap().iter().map(|run| &run["settings"]).collect();
    assert!(own.contains(&&serde_json::json!({ "partition.q": 0.5 })), "{own:?}");
    let detail = detail(address, &id(address, "a"));
    assert_eq!(detail["settings"]["partition.q"], 0.5);
    assert_eq!(detail["settings"]["seed"], 3);
}

#[test]
fn a_run_that_fell_silent_says_how_to_continue_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("it's cut");
    run(&place, &[&line(1)]);
    let old = std::time::SystemTime::now() - Duration::from_secs(90);
    let rounds = std::fs::File::options().append(true).open(place.join("rounds.jsonl")).unwrap();
    rounds.set_modified(old).unwrap();
    let (address, _) = serve(vec![folder.path().into()], "127.0.0.1");
    let id = id(address, "it's cut");
    let resume = || detail(address, &id)["next"]["command"].clone();
    assert_eq!(resume(), Value::Null, "there is no checkpoint to continue from");
    std::fs::write(place.join("checkpoint"), "x").unwrap();
    assert_eq!(resume(), "resume=True, in the program that began it");
    std::fs::write(place.join("config.toml"), "[rule]\nkind = \"fedavg\"\n").unwrap();
    let wanted = format!("fedstay run --resume '{}/it'\\''s cut'", folder.path().display());
    let since = Instant::now();
    while resume() != wanted.as_str() {
        assert!(since.elapsed() < Duration::from_secs(10), "{} is not {wanted}", resume());
        std::thread::sleep(Duration::from_millis(100));
    }
}
