//! Tables by their dotted keys: `rule.delta` is the `delta` of the table `rule`.

use super::SpecError;
use crate::text::one_line;
use toml::{Table, Value};

/// Reads TOML. An error says in one line what is wrong, and where.
///
/// # Errors
/// When the text is not TOML.
pub fn read_table(text: &str) -> Result<Table, SpecError> {
    toml::from_str(text).map_err(|error| SpecError::syntax(error, text))
}

/// A value as TOML writes it; what is not a TOML value is a string.
pub(crate) fn parse_value(text: &str) -> Value {
    toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Sets `a.b.c` in a table, and creates the tables on the path to it.
pub(crate) fn put(table: &mut Table, key: &str, value: Value) -> Result<(), SpecError> {
    if key.split('.').any(str::is_empty) {
        return Err(SpecError::NotAName { key: one_line(key) });
    }
    let mut table = table;
    let mut rest = key;
    while let Some((head, tail)) = rest.split_once('.') {
        let entry = table.entry(head.to_owned()).or_insert_with(|| Value::Table(Table::new()));
        if entry.is_array() && tail == "kind" {
            // A list of kinds gives way to one.
            *entry = Value::Table(Table::new());
        }
        let Value::Table(inner) = entry else {
            return Err(SpecError::NotATable { key: one_line(key), part: one_line(head) });
        };
        (table, rest) = (inner, tail);
    }
    table.insert(rest.to_owned(), value);
    Ok(())
}

/// Something with named parts: TOML or JSON.
pub(crate) trait Tree: PartialEq + Sized {
    /// The part of this name.
    fn part(&self, name: &str) -> Option<&Self>;

    /// The parts and their names; `None` for what has a value instead.
    fn parts(&self) -> Option<Box<dyn Iterator<Item = (&String, &Self)> + '_>>;

    /// The value, if it is a number.
    fn number(&self) -> Option<f64>;
}

impl Tree for Value {
    fn part(&self, name: &str) -> Option<&Self> {
        self.as_table()?.get(name)
    }

    fn parts(&self) -> Option<Box<dyn Iterator<Item = (&String, &Self)> + '_>> {
        Some(Box::new(self.as_table()?.iter()))
    }

    fn number(&self) -> Option<f64> {
        self.as_float().or_else(|| self.as_integer().map(|number| number as f64))
    }
}

impl Tree for serde_json::Value {
    fn part(&self, name: &str) -> Option<&Self> {
        self.get(name)
    }

    fn parts(&self) -> Option<Box<dyn Iterator<Item = (&String, &Self)> + '_>> {
        Some(Box::new(self.as_object()?.iter()))
    }

    fn number(&self) -> Option<f64> {
        self.as_f64()
    }
}

/// The value of a dotted key.
pub(crate) fn look_up<'a, T: Tree>(tree: &'a T, key: &str) -> Option<&'a T> {
    key.split('.').try_fold(tree, |tree, name| tree.part(name))
}

/// Every value under its dotted key, in the order of the tree.
pub(crate) fn leaves<T: Tree>(tree: &T) -> Vec<(String, &T)> {
    fn walk<'a, T: Tree>(tree: &'a T, prefix: &str, found: &mut Vec<(String, &'a T)>) {
        match tree.parts() {
            None => found.push((prefix.to_owned(), tree)),
            // By the names of owners, which are no keys.
            Some(_) if prefix == "epsilon" => found.push((prefix.to_owned(), tree)),
            Some(parts) => parts.for_each(|(name, part)| match prefix {
                "" => walk(part, name, found),
                _ => walk(part, &format!("{prefix}.{name}"), found),
            }),
        }
    }
    let mut found = Vec::new();
    walk(tree, "", &mut found);
    found
}

/// Whether two values are equal as a reader sees them: 1 and 1.0 are.
pub(crate) fn same<T: Tree>(a: &T, b: &T) -> bool {
    match (a.number(), b.number()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_found() {
        let mut table = Table::new();
        for (key, value) in [("a.b.c", "1"), ("a.d", "two"), ("e", "[3, 4]")] {
            put(&mut table, key, parse_value(value)).unwrap();
        }
        let tree = Value::Table(table.clone());
        assert_eq!(look_up(&tree, "a.d"), Some(&Value::from("two")));
        assert!(same(look_up(&tree, "a.b.c").unwrap(), &Value::from(1.0)));
        assert_eq!(look_up(&tree, "a.b.x"), None);
        let names: Vec<String> = leaves(&tree).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a.b.c", "a.d", "e"]);
        let said =
            |key: &str| put(&mut table.clone(), key, Value::from(1)).unwrap_err().to_string();
        assert_eq!(said("e.f"), "`e.f` cannot be set: `e` is not a table");
        assert_eq!(said("a..b"), "`a..b` is not a key; keys look like `rule.delta`");
    }

    #[test]
    fn a_list_of_kinds_gives_way_to_one() {
        let mut table = read_table("[[policy]]\nkind = 'guard'\ndelta = 0.1").unwrap();
        let refused = put(&mut table, "policy.delta", Value::from(0.2)).unwrap_err().to_string();
        assert_eq!(refused, "`policy.delta` cannot be set: `policy` is not a table");
        put(&mut table, "policy.kind", Value::from("preview")).unwrap();
        assert_eq!(table["policy"].as_table().unwrap().len(), 1);
    }

    #[test]
    fn json_is_looked_up_like_toml() {
        let tree = serde_json::json!({ "a": { "b": 1, "c": [2] }, "d": {} });
        assert!(same(look_up(&tree, "a.b").unwrap(), &serde_json::json!(1.0)));
        let names: Vec<String> = leaves(&tree).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a.b", "a.c"]);
        assert!(!same(&serde_json::json!("1"), &serde_json::json!(1)));
    }
}
