//! Ctrl-C: says how to continue, then ends the program as the signal would have.

use fedstay::{Book, Error, RoundRecord};
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The exit code of a program that Ctrl-C ended: 128 and the number of the signal.
const INTERRUPTED: i32 = 130;

/// The files that waiting for a signal opens, and some to spare for the run.
#[cfg(unix)]
const NEEDED: usize = 12;

/// Watches for Ctrl-C, and for how far a run has come. It is a [`Book`].
///
/// What is on disk needs no farewell: a run's folder and a sweep's store can be continued after any
/// end, even one without warning.
pub struct Interrupt {
    round: Arc<AtomicU32>,
}

impl Interrupt {
    /// From now on Ctrl-C says `hint`, after the round it came in if a run is watched.
    pub fn watch(hint: String) -> Self {
        let round = Arc::new(AtomicU32::new(0));
        let reached = Arc::clone(&round);
        // Where no signal can be waited for, Ctrl-C ends the program as it always does.
        let runtime = match has_room() {
            true => tokio::runtime::Builder::new_current_thread().enable_all().build().ok(),
            false => None,
        };
        std::thread::spawn(move || {
            let Some(runtime) = runtime else { return };
            if runtime.block_on(tokio::signal::ctrl_c()).is_err() {
                return;
            }
            let when = match reached.load(Ordering::Relaxed) {
                0 => "stopped".to_owned(),
                round => format!("stopped after round {round}"),
            };
            // The line may hold a progress bar.
            let clear = if std::io::stderr().is_terminal() { "\r\u{1b}[2K" } else { "" };
            let _ = writeln!(std::io::stderr(), "{clear}{when}; {hint}");
            std::process::exit(INTERRUPTED);
        });
        Self { round }
    }
}

/// Whether a few more files can be open at once. What waits for signals opens some, and panics where
/// it cannot.
fn has_room() -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::net::UnixStream;
        let pairs: Result<Vec<_>, _> =
            (0..NEEDED.div_ceil(2)).map(|_| UnixStream::pair()).collect();
        pairs.is_ok()
    }
    #[cfg(not(unix))]
    true
}

impl Book for Interrupt {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.round.store(record.line.round, Ordering::Relaxed);
        Ok(ControlFlow::Continue(()))
    }
}
