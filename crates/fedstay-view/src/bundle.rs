//! The page's modules as one script.
//!
//! A browser asks for a module when another names it, and has six connections: two dozen modules make it wait for
//! several rounds of requests before the first line runs. So they are sent as one. Each becomes a function that
//! returns what the module exports, in an order in which everybody finds what it imports. Only what our modules use
//! is understood: `import { a, b } from "./x.js";` in one line, and `export` before a function, class or
//! constant.

use std::collections::BTreeMap;

/// One script with the module `entry` and all it imports.
///
/// # Errors
/// When a module is missing, imports itself through others, or says something that is not understood.
pub(crate) fn bundle(modules: &[(&str, &str)], entry: &str) -> Result<String, String> {
    let modules: BTreeMap<&str, Module<'_>> = modules
        .iter()
        .map(|(name, text)| {
            Ok((*name, Module::read(text).map_err(|why| format!("{name}: {why}"))?))
        })
        .collect::<Result<_, String>>()?;
    let mut order = Vec::new();
    sort(&modules, entry, &mut Vec::new(), &mut order)?;
    Ok(order.iter().map(|name| modules[name].written(name, *name == entry)).collect())
}

struct Module<'a> {
    /// What it imports: the names, and the module they come from.
    imports: Vec<(&'a str, &'a str)>,
    exports: Vec<&'a str>,
    body: String,
}

impl<'a> Module<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        let mut module = Self { imports: Vec::new(), exports: Vec::new(), body: String::new() };
        for line in text.lines() {
            let plain = if line.starts_with("import") {
                module.imports.push(imported(line).ok_or_else(|| format!("`{line}`"))?);
                ""
            } else if let Some(declared) = line.strip_prefix("export ") {
                module.exports.push(exported(declared).ok_or_else(|| format!("`{line}`"))?);
                declared
            } else {
                line
            };
            module.body.push_str(plain);
            module.body.push('\n');
        }
        Ok(module)
    }

    fn written(&self, name: &str, last: bool) -> String {
        let imports = self.imports.iter();
        let imports: String = imports
            .map(|(names, from)| format!("const {{ {names} }} = {};\n", value(from)))
            .collect();
        let body = self.body.trim();
        // The last one may wait for something, which only a script itself can.
        if last {
            return format!("// {name}\n{imports}{body}\n");
        }
        let exports = self.exports.join(", ");
        format!(
            "// {name}\nconst {} = (() => {{\n{imports}{body}\nreturn {{ {exports} }};\n}})();\n",
            value(name)
        )
    }
}

/// The constant that holds what a module exports.
fn value(name: &str) -> String {
    format!("${}", name.trim_end_matches(".js").replace('-', "_"))
}

fn imported(line: &str) -> Option<(&str, &str)> {
    let (names, from) = line.strip_prefix("import { ")?.split_once(" } from \"./")?;
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "_$, ".contains(sign);
    let from = from.strip_suffix("\";")?;
    (names.chars().all(plain) && !names.contains(" as ")).then_some((names, from))
}

fn exported(declared: &str) -> Option<&str> {
    let kinds = ["function ", "async function ", "class ", "const "];
    let rest = kinds.iter().find_map(|kind| declared.strip_prefix(kind))?;
    let end = rest.find(|sign: char| !(sign.is_ascii_alphanumeric() || "_$".contains(sign)))?;
    Some(&rest[..end]).filter(|name| !name.is_empty())
}

/// Puts what a module imports before it.
fn sort<'a>(
    modules: &BTreeMap<&'a str, Module<'a>>,
    name: &'a str,
    above: &mut Vec<&'a str>,
    order: &mut Vec<&'a str>,
) -> Result<(), String> {
    if order.contains(&name) {
        return Ok(());
    }
    if above.contains(&name) {
        return Err(format!("{} imports itself", above.join(" → ")));
    }
    let module = modules.get(name).ok_or_else(|| format!("there is no module {name}"))?;
    above.push(name);
    for (names, from) in &module.imports {
        sort(modules, from, above, order)?;
        let exports = &modules[from].exports;
        if let Some(missing) = names.split(", ").find(|wanted| !exports.contains(wanted)) {
            return Err(format!("{name}: {from} does not export {missing}"));
        }
    }
    above.pop();
    order.push(name);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str =
        "export const NONE = 1;\nlet seen = 0;\nexport function el(tag) {\n  return seen;\n}\n";

    #[test]
    fn a_module_is_a_function_and_comes_before_who_imports_it() {
        let app = "import { NONE, el } from \"./words.js\";\nawait el(NONE);\n";
        let script = bundle(&[("app.js", app), ("words.js", WORDS)], "app.js").unwrap();
        let wanted = "// words.js\nconst $words = (() => {\nconst NONE = 1;\nlet seen = 0;\nfunction el(tag) \
                      {\n  return seen;\n}\nreturn { NONE, el };\n})();\n// app.js\nconst { NONE, el } = \
                      $words;\nawait el(NONE);\n";
        assert_eq!(script, wanted);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let refused = |app: &str, wanted: &str| {
            let modules = [("app.js", app), ("words.js", WORDS)];
            let why = bundle(&modules, "app.js").unwrap_err();
            assert!(why.contains(wanted), "{why}");
        };
        refused("import * as words from \"./words.js\";", "app.js: `import *");
        refused("import { el as make } from \"./words.js\";", "el as make");
        refused("import { el } from \"https://example.org/words.js\";", "example.org");
        refused("import { gone } from \"./words.js\";", "does not export gone");
        refused("import { el } from \"./gone.js\";", "no module gone.js");
        refused("export let state = 1;", "export let");
        refused("export default el;", "export default");
        let circle = [
            ("a.js", "import { b } from \"./b.js\";\nexport const a = 1;"),
            ("b.js", "import { a } from \"./a.js\";\nexport const b = 1;"),
        ];
        assert!(bundle(&circle, "a.js").unwrap_err().contains("a.js → b.js imports itself"));
    }
}
