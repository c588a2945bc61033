//! The page's own files, part of the program.
//!
//! They are written as many small files and sent as few: the page's frame with its style sheet inside, which a
//! browser can paint before it has anything else, a few lines of script that wait for this, and all the rest as one
//! script and one style sheet. The style sheet inside is allowed by its hash.

use crate::bundle::bundle;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fedstay_draw::picture::chart::charts;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! files {
    ($($name:literal: $kind:expr),* $(,)?) => {
        &[$(($name, $kind, include_str!(concat!("page/", $name)))),*]
    };
}

const FILES: &[(&str, &str, &str)] = files! {
    "index.html": HTML,
    "style.css": CSS,
    "icon.svg": "image/svg+xml",
    "all.js": SCRIPT,
    "app.js": SCRIPT,
    "axes.js": SCRIPT,
    "card.js": SCRIPT,
    "compare.js": SCRIPT,
    "cursor.js": SCRIPT,
    "data.js": SCRIPT,
    "delivered.js": SCRIPT,
    "diff.js": SCRIPT,
    "first.js": SCRIPT,
    "frame.css": CSS,
    "lines.js": SCRIPT,
    "list.js": SCRIPT,
    "looks.js": SCRIPT,
    "losses.js": SCRIPT,
    "map.js": SCRIPT,
    "measures.js": SCRIPT,
    "members.js": SCRIPT,
    "query.js": SCRIPT,
    "results.js": SCRIPT,
    "run.js": SCRIPT,
    "save.js": SCRIPT,
    "sign.js": SCRIPT,
    "spread.js": SCRIPT,
    "state.js": SCRIPT,
    "strip.js": SCRIPT,
    "svg.js": SCRIPT,
    "table.js": SCRIPT,
    "theme.js": SCRIPT,
    "tracks.js": SCRIPT,
    "values.js": SCRIPT,
    "words.js": SCRIPT,
};

/// How the page names its style sheet and its script, and what is sent instead.
const STYLE: &str = r#"<link rel="stylesheet" href="/page/frame.css">"#;
const ENTRY: &str = "/page/app.js";
const WHOLE: &str = "page.js";
/// The script that the page names; it asks for the other one.
const FIRST: &str = "first.js";
/// How the page begins, before it has a theme.
const ROOT: &str = r#"<html lang="en">"#;
/// The colours of the dark theme.
const DARK: &str = r#":root[data-theme="dark"] {"#;

/// The colours of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Those of the system.
    Auto,
    Light,
    Dark,
}

impl Theme {
    /// The theme that somebody chose, by the cookies of a request.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut pairs =
            lines.flat_map(|line| line.split(';')).filter_map(|one| one.trim().split_once('='));
        match pairs.find(|(name, _)| *name == "fedstay-theme") {
            Some((_, "light")) => Self::Light,
            Some((_, "dark")) => Self::Dark,
            _ => Self::Auto,
        }
    }
}

fn text(name: &str) -> &'static str {
    FILES.iter().find(|(known, ..)| *known == name).map_or("", |(.., text)| *text)
}

/// The style sheet of the frame. A page whose theme is the system's is dark before a script can say so.
static SHEET: LazyLock<String> = LazyLock::new(|| {
    let sheet = text("frame.css");
    let dark = sheet.split_once(DARK).and_then(|(_, rest)| rest.split_once('}'));
    let colours = dark.map_or("", |(colours, _)| colours);
    let system = "@media (prefers-color-scheme: dark) { :root:not([data-theme]) {";
    sheet.replacen(DARK, &format!("{system}{colours}}} }}\n{DARK}"), 1)
});

static PAGES: LazyLock<[String; 3]> = LazyLock::new(|| {
    let page = text("index.html").replace(STYLE, &format!("<style>{}</style>", *SHEET));
    let themed =
        |theme: &str| page.replacen(ROOT, &format!(r#"<html lang="en" data-theme="{theme}">"#), 1);
    [page.clone(), themed("light"), themed("dark")]
});

static FIRST_SCRIPT: LazyLock<String> =
    LazyLock::new(|| text(FIRST).replace(ENTRY, &format!("/page/{WHOLE}")));

/// The module that says what charts show and how that looks, as the drawings of a report have it.
const CHARTS: &str = "charts.js";

static CHARTS_SCRIPT: LazyLock<String> =
    LazyLock::new(|| format!("export const CHARTS = {};\n", json!(charts())));

static SCRIPTS: LazyLock<String> = LazyLock::new(|| {
    let scripts = FILES.iter().filter(|(name, kind, _)| *kind == SCRIPT && *name != FIRST);
    let scripts = scripts.map(|(name, _, text)| (*name, *text));
    let modules: Vec<(&str, &str)> = scripts.chain([(CHARTS, CHARTS_SCRIPT.as_str())]).collect();
    // A test holds our files to what the bundler reads.
    bundle(&modules, "app.js").unwrap_or_else(|why| format!("throw new Error({why:?});"))
});

/// What a page may do: use its own script, its own style sheet and this server, and nothing else.
pub(crate) static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(SHEET.as_bytes()));
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{hash}'; img-src 'self'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});

/// Makes what is sent, so that nobody waits for it.
pub(crate) fn prepare() {
    LazyLock::force(&PAGES);
    LazyLock::force(&FIRST_SCRIPT);
    LazyLock::force(&SCRIPTS);
    LazyLock::force(&POLICY);
}

/// The page itself.
pub(crate) fn page(theme: Theme) -> Response {
    ([(header::CONTENT_TYPE, HTML)], PAGES[theme as usize].as_str()).into_response()
}

/// A file of the page, by its name.
pub(crate) fn answer(name: &str) -> Response {
    let made = match name {
        WHOLE => Some((SCRIPT, SCRIPTS.as_str())),
        FIRST => Some((SCRIPT, FIRST_SCRIPT.as_str())),
        CHARTS => Some((SCRIPT, CHARTS_SCRIPT.as_str())),
        _ => FILES.iter().find(|(known, ..)| *known == name).map(|(_, kind, text)| (*kind, *text)),
    };
    match made {
        Some((kind, text)) => ([(header::CONTENT_TYPE, kind)], text).into_response(),
        None => (StatusCode::NOT_FOUND, "there is no such page\n").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn the_page_asks_nobody_else_and_keeps_to_its_policy() {
        for (name, _, text) in FILES {
            // Namespaces and links for people are not requests.
            let text = text.replace("http://www.w3.org/", "");
            assert!(!text.contains("http://") && !text.contains("https://"), "{name}");
            for forbidden in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            {
                assert!(!text.contains(forbidden), "{name}: {forbidden}");
            }
        }
        let page = text("index.html");
        assert!(
            !page.contains("<style") && !page.contains(" style=") && !page.contains(" onclick")
        );
        assert!(!page.contains("<script>"));
    }

    #[test]
    fn the_page_is_sent_with_its_style_and_waits_for_no_other_script() {
        assert!(!SHEET.contains("</"), "it would end the style sheet");
        for page in PAGES.iter() {
            assert!(page.contains(":root {") && !page.contains("/page/frame.css"));
            assert_eq!(page.matches("<script").count(), 1);
            assert!(page.contains(r#"<script type="module" src="/page/first.js">"#));
            let style = page.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next());
            let hash = STANDARD.encode(Sha256::digest(style.unwrap()));
            assert!(POLICY.contains(&format!("'sha256-{hash}'")), "{}", *POLICY);
        }
        assert!(FIRST_SCRIPT.contains("/page/page.js") && !FIRST_SCRIPT.contains(ENTRY));
        assert!(FIRST_SCRIPT.contains("/page/style.css"));
        // What the first paint waits for stays small.
        assert!(PAGES[0].len() < 10_000, "{}", PAGES[0].len());
        assert!(FIRST_SCRIPT.len() < 2_000, "{}", FIRST_SCRIPT.len());
    }

    #[test]
    fn the_first_frame_has_the_theme_that_was_chosen() {
        let of = |cookie: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, HeaderValue::from_str(cookie).unwrap());
            Theme::of(&headers)
        };
        assert_eq!(of("fedstay-8765=x; fedstay-theme=dark"), Theme::Dark);
        assert_eq!(of("fedstay-theme=light; a=b"), Theme::Light);
        for none in ["", "fedstay-theme", "fedstay-theme=<script>", "theme=dark"] {
            assert_eq!(of(none), Theme::Auto, "{none}");
        }
        assert!(PAGES[Theme::Dark as usize].contains(r#"<html lang="en" data-theme="dark">"#));
        assert!(PAGES[Theme::Light as usize].contains(r#"<html lang="en" data-theme="light">"#));
        assert!(PAGES[Theme::Auto as usize].contains(r#"<html lang="en">"#));
        // The system's dark colours are those of the dark theme.
        let colours = |of: &str| SHEET.split_once(of).map(|(_, rest)| rest.split('}').next());
        assert!(SHEET.contains("prefers-color-scheme: dark"));
        assert_eq!(colours(DARK), colours(":root:not([data-theme]) {"));
        assert!(colours(DARK).flatten().is_some_and(|colours| colours.contains("--paper: #")));
    }

    #[test]
    fn no_line_of_a_script_is_longer_than_100_columns() {
        for (name, _, text) in FILES.iter().filter(|(_, kind, _)| *kind == SCRIPT) {
            for (number, line) in text.lines().enumerate() {
                let columns = line.chars().count();
                assert!(columns <= 100, "{name}:{}: {columns} columns", number + 1);
            }
        }
    }

    #[test]
    fn every_script_is_in_the_one_that_is_sent() {
        assert!(!SCRIPTS.starts_with("throw"), "{}", *SCRIPTS);
        assert!(SCRIPTS.contains("// charts.js\n") && SCRIPTS.contains("\"worst agent\""));
        let others = |(name, kind, _): &&(&str, &str, &str)| *kind == SCRIPT && *name != FIRST;
        for (name, ..) in FILES.iter().filter(others) {
            assert!(SCRIPTS.contains(&format!("// {name}\n")), "{name} is used by no other");
        }
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(FILES.iter().any(|(known, ..)| *known == name), "{name} is not served");
        }
    }
}
