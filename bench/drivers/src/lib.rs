//! What the benchmark drivers share: Figure 2's setting, and how much memory and time this process
//! has used. The drivers are in `src/bin`; the Python programs beside this folder run them.

use fedstay_sim::experiment::Experiment;

/// The result of a benchmark: any error ends it.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Figure 2's setting with all of CIFAR-10: ten agents of 5,000 images each, the network of 128
/// hidden units, five local steps on 64 images. No round but the first measures accuracies.
const SETTING: &str = r#"
seed = 0
rounds = 500
step_size = 0.1
epsilon = 0.2
agents = 10
eval_every = 1000000
data.kind = "cifar10"
data.per_agent = 5000
partition = { kind = "by-class", q = 0.9 }
model = { kind = "mlp", hidden = [128], activation = "softplus", init = "torch" }
local = { steps = 5, step = "eta", batch = 64 }
rule.kind = "fedavg"
"#;

/// Figure 2's setting, with keys changed.
pub fn figure_two(changes: &[(&str, &str)]) -> Outcome<Experiment> {
    let set = changes.iter().map(|(key, value)| (key.to_string(), value.to_string()));
    Ok(Experiment::parse(SETTING, &set.collect::<Vec<_>>())?)
}

/// The peak memory of this process, in megabytes.
pub fn peak_megabytes() -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).ok_or("no VmHWM")?;
    let kilobytes = line.split_whitespace().nth(1).ok_or("no number")?.parse::<f64>()?;
    Ok(kilobytes * 1024.0 / 1e6)
}

/// The seconds this process has computed, on all its threads. On a shared machine this says more
/// than the time of day: waiting for a core does not count.
pub fn cpu_seconds() -> f64 {
    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    }
    const PROCESS_CPU: i32 = 2; // CLOCK_PROCESS_CPUTIME_ID on Linux
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: `time` has the layout of a `timespec` on 64-bit Linux and outlives the call.
    let failed = unsafe { clock_gettime(PROCESS_CPU, &mut time) };
    assert_eq!(failed, 0, "no clock for the process");
    time.seconds as f64 + time.nanoseconds as f64 * 1e-9
}
