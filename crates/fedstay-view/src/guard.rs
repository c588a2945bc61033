//! Who may ask, and what every answer says about what a page may do with it.
//!
//! On this machine's own address anybody on this machine may ask, but no web page may: one that
//! points its own name at 127.0.0.1 (DNS rebinding) still sends that name as the host, and is
//! refused. On any other address a token is required, in the URL once and in a cookie from then on.

use crate::assets::POLICY;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Who may ask.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    /// The token that has to be in the URL, unless the server is on this machine's own address.
    pub(crate) token: Option<String>,
    /// The name of the cookie. Browsers share cookies between ports, so the name has the port.
    pub(crate) cookie: String,
}

/// Lets a request through, or refuses it; adds the headers of every answer.
pub(crate) async fn guard(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match access.judge(&request) {
        Ok(cookie) => {
            let mut response = next.run(request).await;
            if let Some(cookie) = cookie {
                response.headers_mut().insert(header::SET_COOKIE, cookie);
            }
            response
        }
        Err((status, why)) => (status, why).into_response(),
    };
    let fixed: [(HeaderName, &'static str); 6] = [
        (header::CONTENT_SECURITY_POLICY, POLICY.as_str()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

impl Access {
    fn judge(&self, request: &Request) -> Result<Option<HeaderValue>, (StatusCode, &'static str)> {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n"));
        }
        let Some(token) = &self.token else {
            // A request may name the host before its path too, and then that one counts.
            let named =
                request.uri().authority().is_none_or(|authority| is_own(authority.as_str()));
            return match named && own_name(request.headers()) {
                true => Ok(None),
                false => {
                    Err((StatusCode::FORBIDDEN, "ask for 127.0.0.1 or localhost by that name\n"))
                }
            };
        };
        let query = request.uri().query().unwrap_or_default();
        let given = query.split('&').find_map(|pair| pair.strip_prefix("token="));
        if given.is_some_and(|given| equal(given, token)) {
            let cookie = format!("{}={token}; HttpOnly; SameSite=Strict; Path=/", self.cookie);
            return Ok(HeaderValue::from_str(&cookie).ok());
        }
        let cookies = request.headers().get_all(header::COOKIE).iter();
        let kept = cookies.filter_map(|value| value.to_str().ok()).flat_map(|line| line.split(';'));
        let kept = kept.filter_map(|pair| pair.trim().split_once('='));
        match kept.into_iter().any(|(name, value)| name == self.cookie && equal(value, token)) {
            true => Ok(None),
            false => {
                Err((StatusCode::UNAUTHORIZED, "open the address with its token, as printed\n"))
            }
        }
    }
}

/// Whether the host asked for is this machine by its own address, whatever the port (a forwarded
/// one differs).
fn own_name(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    host.to_str().is_ok_and(is_own)
}

/// Whether a host is `localhost`, `127.0.0.1` or `[::1]`, with or without a port. An authority that
/// merely begins like one of them is somebody else's.
fn is_own(authority: &str) -> bool {
    let authority = authority.to_ascii_lowercase();
    let port =
        ["localhost", "127.0.0.1", "[::1]"].iter().find_map(|own| authority.strip_prefix(own));
    match port.map(|port| port.strip_prefix(':').ok_or(port)) {
        Some(Ok(digits)) => {
            digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok()
        }
        Some(Err(rest)) => rest.is_empty(),
        None => false,
    }
}

/// Compares in a time that does not reveal how much was right.
fn equal(a: &str, b: &str) -> bool {
    let differ = a.bytes().zip(b.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    a.len() == b.len() && differ == 0
}

/// A token of 128 bits from the operating system.
pub(crate) fn new_token() -> std::io::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(host: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        own_name(&headers)
    }

    #[test]
    fn only_this_machine_by_its_own_name() {
        for host in ["localhost", "localhost:8000", "127.0.0.1:1", "[::1]:80", "LOCALHOST:9"] {
            assert!(named(host), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:80",
            "",
            "[::2]",
            "10.0.0.1",
            "[::1].evil.example",
            "[::1]evil",
            "[::1",
            "[localhost]",
            "::1",
            "localhost:evil.example",
            "localhost:80:80",
            "localhost:",
            "localhost:+80",
            "localhost:65536",
            "localhost:80@evil.example",
            "user@localhost",
            " localhost",
        ] {
            assert!(!named(host), "{host}");
        }
        assert!(!own_name(&HeaderMap::new()));
    }

    #[test]
    fn tokens_differ_and_compare() {
        let (a, b) = (new_token().unwrap(), new_token().unwrap());
        assert_eq!(a.len(), 32);
        assert!(
            a != b && equal(&a, &a) && !equal(&a, &b) && !equal(&a, &a[..31]) && !equal("", &a)
        );
    }
}
