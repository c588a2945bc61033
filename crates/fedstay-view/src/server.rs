//! The server: the page's files, the runs as JSON, and a stream that says when there is more.

use crate::ViewError;
use crate::assets::{self, Theme};
use crate::connections::{self, Limits};
use crate::guard::{Access, guard, new_token};
use crate::library::Library;
use crate::series::SentBefore;
use crate::whole::{self, MOST_AT_ONCE};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::BroadcastStream;

/// What to show, and to whom.
#[derive(Debug, Clone)]
pub struct View {
    /// The folders whose runs are shown.
    pub folders: Vec<PathBuf>,
    /// The address to listen on. Unless it is a loopback address, a token is required.
    pub host: IpAddr,
    /// The port; 0 takes any that is free.
    pub port: u16,
}

impl View {
    /// Serves until the process ends or is interrupted. `ready` is told the URL to open.
    ///
    /// # Errors
    /// When a folder does not exist or the port is taken.
    pub fn serve(self, ready: impl FnOnce(&str)) -> Result<(), ViewError> {
        let library = Arc::new(Library::new(&self.folders).map_err(ViewError::Folder)?);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(ViewError::Io)?;
        runtime.block_on(async move {
            let address = SocketAddr::new(self.host, self.port);
            let listener = TcpListener::bind(address)
                .await
                .map_err(|error| ViewError::Address { address, error })?;
            let local = listener.local_addr().map_err(ViewError::Io)?;
            let token = match self.host.is_loopback() {
                true => None,
                false => Some(new_token().map_err(ViewError::Io)?),
            };
            let query = token.as_ref().map_or(String::new(), |token| format!("?token={token}"));
            let access = Access { token, cookie: format!("fedstay-{}", local.port()) };
            let following = library.clone();
            std::thread::spawn(move || following.follow());
            assets::prepare();
            ready(&format!("http://{local}/{query}"));
            let interrupted = interrupted();
            let serve = connections::serve(listener, router(library, access), Limits::default());
            // Streams never end by themselves, so an interrupt does not wait for them.
            tokio::select! {
                () = serve => {}
                () = interrupted => {}
            }
            Ok(())
        })
    }
}

/// Waits until somebody wants the process to end.
async fn interrupted() {
    let keyboard = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let asked = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut asked) => asked.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let asked = std::future::pending::<Option<()>>();
    tokio::select! {
        () = keyboard => {}
        _ = asked => {}
    }
}

fn router(library: Arc<Library>, access: Access) -> Router {
    Router::new()
        .route("/", get(|headers: HeaderMap| async move { assets::page(Theme::of(&headers)) }))
        .route("/page/{name}", get(|Path(name): Path<String>| async move { assets::answer(&name) }))
        .route("/api/runs", get(runs))
        .route("/api/whole", get(whole))
        .route("/api/runs/{id}/series", get(series))
        .route("/api/runs/{id}/landscape", get(map))
        .route("/api/events", get(events))
        .fallback(|| async { missing() })
        .layer(axum::middleware::from_fn_with_state(Arc::new(access), guard))
        .with_state(library)
}

fn missing() -> Response {
    (StatusCode::NOT_FOUND, "there is no such page or run\n").into_response()
}

/// Runs a reading of files, which blocks, beside the threads that answer.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Option<T> + Send + 'static,
    answer: impl FnOnce(T) -> Response,
) -> Response {
    match tokio::task::spawn_blocking(work).await {
        Ok(Some(value)) => answer(value),
        Ok(None) => missing(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "this run cannot be shown\n").into_response(),
    }
}

async fn runs(State(library): State<Arc<Library>>) -> Response {
    beside(move || Some(library.listings()), |runs| Json(runs).into_response()).await
}

async fn series(
    State(library): State<Arc<Library>>,
    Path(id): Path<String>,
    Query(have): Query<SentBefore>,
) -> Response {
    beside(move || library.series(&id, have), binary).await
}

/// The runs that are asked for, by their ids, with commas between them.
#[derive(serde::Deserialize)]
struct Ids {
    ids: String,
}

async fn whole(
    State(library): State<Arc<Library>>,
    Query(Ids { ids }): Query<Ids>,
    Query(have): Query<SentBefore>,
) -> Response {
    let read = move || {
        let ids: Vec<&str> = ids.split(',').take(MOST_AT_ONCE).collect();
        // What a page has is said of a single run.
        let have = if ids.len() == 1 { have } else { SentBefore::default() };
        Some(whole::encode(ids.into_iter().map(|id| library.whole(id, have))))
    };
    beside(read, binary).await
}

fn binary(bytes: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/octet-stream")], Body::from(bytes)).into_response()
}

async fn map(State(library): State<Arc<Library>>, Path(id): Path<String>) -> Response {
    beside(move || library.map(&id), |map| Json(map).into_response()).await
}

/// A stream with one event whenever a run that somebody watches has more, or the list has changed. A stream ends by
/// itself once this number of others have begun, and its connection with it; a page then asks for another.
async fn events(State(library): State<Arc<Library>>) -> Response {
    let (events, turn) = library.subscribe();
    let events = BroadcastStream::new(events)
        .take_while(move |_| turn.lasts())
        // A page that was too slow for some events is told that everything may have changed.
        .map(|event| event.unwrap_or_else(|_| r#"{"kind":"all"}"#.to_owned()))
        .filter(|text| !text.is_empty())
        .map(|text| Ok::<_, Infallible>(Event::default().data(text)));
    let stream = Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(10)));
    ([(header::CONNECTION, "close")], stream).into_response()
}
