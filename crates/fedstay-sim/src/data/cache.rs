//! Where fetched data sets are kept.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::DataError;

/// The folder that holds one folder for every fetched data set: `$FEDSTAY_DATA`, else
/// `$XDG_CACHE_HOME/fedstay`, else `~/.cache/fedstay`.
pub fn cache_dir() -> Result<PathBuf, DataError> {
    choose(|name| std::env::var_os(name))
}

/// Makes the choice from the given variables; an empty one counts as not set.
fn choose(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, DataError> {
    let folder = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("FEDSTAY_DATA")
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("fedstay")))
        .or_else(|| Some(folder("HOME").or(folder("USERPROFILE"))?.join(".cache").join("fedstay")))
        .ok_or_else(|| {
            let why = "set it to the folder in which data sets are kept: there is no home folder";
            DataError::setting("FEDSTAY_DATA", why)
        })
}

/// The folder of data set `kind`: the one the user named, else its place in the cache.
pub(super) fn folder(path: Option<&Path>, kind: &str) -> Result<PathBuf, DataError> {
    path.map_or_else(|| Ok(cache_dir()?.join(kind)), |path| Ok(path.to_path_buf()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let with = |set: &[(&str, &str)]| {
            choose(|name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
            })
        };
        let all = [("HOME", "/h"), ("XDG_CACHE_HOME", "/x"), ("FEDSTAY_DATA", "/f")];
        assert_eq!(with(&all).unwrap(), PathBuf::from("/f"));
        assert_eq!(with(&all[..2]).unwrap(), PathBuf::from("/x/fedstay"));
        assert_eq!(with(&all[..1]).unwrap(), PathBuf::from("/h/.cache/fedstay"));
        assert_eq!(
            with(&[("FEDSTAY_DATA", ""), all[0]]).unwrap(),
            PathBuf::from("/h/.cache/fedstay")
        );
        assert!(with(&[]).unwrap_err().to_string().starts_with("FEDSTAY_DATA: set it to"));
    }
}
