//! Connections: how many at once, and how long one may take to say what it wants.
//!
//! Without limits a few hundred requests that are half sent, or whose answers nobody reads, from anybody who reaches
//! the port and before any token is asked for, would use up the descriptors of the process.

use crate::patience::PatientStream;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// The limits of one server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The most connections at once. Others wait, in the system's queue, until one ends.
    pub(crate) connections: usize,
    /// The longest a connection may take to send the headers of its next request.
    pub(crate) headers: Duration,
    /// The longest that nobody may read any of an answer.
    pub(crate) unread: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // Some systems give a process 256 descriptors, and the runs' files need a few of them.
        Self { connections: 200, headers: Duration::from_secs(10), unread: Duration::from_secs(30) }
    }
}

/// How long to pause after a connection could not be accepted, for want of descriptors for
/// instance.
const REST: Duration = Duration::from_millis(200);

/// Answers requests for as long as it is polled.
pub(crate) async fn serve(listener: TcpListener, router: Router, limits: Limits) {
    let free = Arc::new(Semaphore::new(limits.connections));
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(limits.headers);
    // The semaphore is never closed, so a place always comes.
    while let Ok(place) = free.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(REST).await;
            continue;
        };
        // The end of an answer does not wait until its beginning is acknowledged, which a browser may put off
        // for 40 ms. Where that cannot be set the answer is only later.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let connection = protocol
            .serve_connection(TokioIo::new(PatientStream::new(stream, limits.unread)), service);
        tokio::spawn(async move {
            // A connection that breaks off or is too slow concerns nobody else.
            let _ = connection.await;
            drop(place);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::time::Instant;

    const LIMITS: Limits = Limits {
        connections: 4,
        headers: Duration::from_millis(300),
        unread: Duration::from_millis(500),
    };

    /// Starts a server; it ends with the test's process.
    fn start() -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let large = || async { "x".repeat(64 << 20) };
                let router = Router::new().route("/", get(|| async { "here" }));
                let router = router.route("/large", get(large));
                serve(TcpListener::from_std(listener).unwrap(), router, LIMITS).await;
            });
        });
        address
    }

    fn connect(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    fn ask(address: SocketAddr) -> String {
        let mut stream = connect(address);
        write!(stream, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn half_sent_requests_do_not_block_the_page() {
        let address = start();
        // Five times as many as there are places; every third sends nothing at all.
        let held: Vec<TcpStream> = (0..5 * LIMITS.connections)
            .map(|number| {
                let mut stream = connect(address);
                if number % 3 > 0 {
                    write!(stream, "GET / HTTP/1.1\r\nHost: loc").unwrap();
                }
                stream
            })
            .collect();
        let since = Instant::now();
        assert!(ask(address).ends_with("here"), "blocked by half-sent requests");
        assert!(since.elapsed() >= LIMITS.headers, "the test needs all places taken");
        // Those that never finished their request were let go, not answered.
        for mut stream in held.into_iter().take(LIMITS.connections) {
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
            assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
        }
    }

    #[test]
    fn answers_that_nobody_reads_do_not_block_the_page() {
        let address = start();
        let held: Vec<TcpStream> = (0..LIMITS.connections)
            .map(|_| {
                let mut stream = connect(address);
                write!(stream, "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
                stream
            })
            .collect();
        // All places are taken now; those that wait get them.
        std::thread::sleep(Duration::from_millis(100));
        assert!(ask(address).ends_with("here"), "blocked by answers that nobody reads");
        drop(held);
    }

    #[test]
    fn more_connections_than_places_all_get_their_answer() {
        let address = start();
        let asked: Vec<_> = (0..40).map(|_| std::thread::spawn(move || ask(address))).collect();
        for answer in asked {
            assert!(answer.join().unwrap().ends_with("here"));
        }
    }
}
