//! The page's own files, part of the program.
//!
//! They are written as many small files and sent as two: the page with its style sheet inside, which a browser
//! can paint before it has anything else, and one script. The style sheet is allowed by its hash.

use crate::bundle::bundle;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
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
    "lines.js": SCRIPT,
    "list.js": SCRIPT,
    "looks.js": SCRIPT,
    "losses.js": SCRIPT,
    "map.js": SCRIPT,
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
const STYLE: &str = r#"<link rel="stylesheet" href="/page/style.css">"#;
const ENTRY: &str = "/page/app.js";
const WHOLE: &str = "page.js";

fn text(name: &str) -> &'static str {
    FILES.iter().find(|(known, ..)| *known == name).map_or("", |(.., text)| *text)
}

static PAGE: LazyLock<String> = LazyLock::new(|| {
    let style = format!("<style>{}</style>", text("style.css"));
    text("index.html").replace(STYLE, &style).replace(ENTRY, &format!("/page/{WHOLE}"))
});

static SCRIPTS: LazyLock<String> = LazyLock::new(|| {
    let scripts = FILES.iter().filter(|(_, kind, _)| *kind == SCRIPT);
    let modules: Vec<(&str, &str)> = scripts.map(|(name, _, text)| (*name, *text)).collect();
    // A test holds our files to what the bundler reads.
    bundle(&modules, "app.js").unwrap_or_else(|why| format!("throw new Error({why:?});"))
});

/// What a page may do: use its own script, its own style sheet and this server, and nothing else.
pub(crate) static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(text("style.css")));
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{hash}'; img-src 'self'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});

/// The page itself.
pub(crate) fn page() -> Response {
    ([(header::CONTENT_TYPE, HTML)], PAGE.as_str()).into_response()
}

/// A file of the page, by its name.
pub(crate) fn answer(name: &str) -> Response {
    if name == WHOLE {
        return ([(header::CONTENT_TYPE, SCRIPT)], SCRIPTS.as_str()).into_response();
    }
    match FILES.iter().find(|(known, ..)| *known == name) {
        Some((_, kind, text)) => ([(header::CONTENT_TYPE, *kind)], *text).into_response(),
        None => (StatusCode::NOT_FOUND, "there is no such page\n").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_page_is_sent_with_its_style_and_one_script() {
        assert!(PAGE.contains(":root {") && !PAGE.contains("/page/style.css"));
        assert!(PAGE.contains(r#"src="/page/page.js""#) && !PAGE.contains(ENTRY));
        assert!(!text("style.css").contains("</"), "it would end the style sheet");
        let style = PAGE.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next());
        let hash = STANDARD.encode(Sha256::digest(style.unwrap()));
        assert!(POLICY.contains(&format!("'sha256-{hash}'")), "{}", *POLICY);
    }

    #[test]
    fn every_script_is_in_the_one_that_is_sent() {
        assert!(!SCRIPTS.starts_with("throw"), "{}", *SCRIPTS);
        for (name, ..) in FILES.iter().filter(|(_, kind, _)| *kind == SCRIPT) {
            assert!(SCRIPTS.contains(&format!("// {name}\n")), "{name} is used by no other");
        }
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(FILES.iter().any(|(known, ..)| *known == name), "{name} is not served");
        }
    }
}
