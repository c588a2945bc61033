//! The page's own files, part of the program.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

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
    "query.js": SCRIPT,
    "results.js": SCRIPT,
    "run.js": SCRIPT,
    "save.js": SCRIPT,
    "state.js": SCRIPT,
    "strip.js": SCRIPT,
    "svg.js": SCRIPT,
    "table.js": SCRIPT,
    "theme.js": SCRIPT,
    "tracks.js": SCRIPT,
    "values.js": SCRIPT,
    "words.js": SCRIPT,
};

/// A file of the page, by its name.
pub(crate) fn answer(name: &str) -> Response {
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
        let (.., page) = FILES.iter().find(|(name, ..)| *name == "index.html").unwrap();
        assert!(
            !page.contains("<style") && !page.contains(" style=") && !page.contains(" onclick")
        );
        assert!(!page.contains("<script>"));
        // Scripts are asked for at once, not one after the other as they name each other.
        for (name, ..) in FILES.iter().filter(|(_, kind, _)| *kind == SCRIPT) {
            assert!(page.contains(&format!("\"/page/{name}\"")), "{name}");
        }
    }
}
