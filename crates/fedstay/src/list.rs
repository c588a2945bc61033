//! What a list (of rules, of behaviours, of problems …) says about its entries.

use serde::Serialize;

/// One entry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its name in a configuration.
    pub name: &'static str,
    /// One sentence that says what it does.
    pub about: &'static str,
    /// Where it comes from.
    pub reference: &'static str,
}

/// What the file of an entry says about it; the list adds the name.
pub(crate) struct Origin {
    /// What it does, in half a sentence.
    pub(crate) about: &'static str,
    /// Where it comes from.
    pub(crate) reference: &'static str,
}

impl Origin {
    pub(crate) const fn named(self, name: &'static str) -> Entry {
        Entry { name, about: self.about, reference: self.reference }
    }
}

/// Makes the enum of a list from lines `Variant = "name", file;`, where the file has the type of that
/// name and an `ORIGIN`. `List(Trait)` dispatches to the trait's methods, `List(mut Trait)` also to
/// those that change the entry.
macro_rules! listed {
    ($(#[$about:meta])* $list:ident(mut $kind:ident) { $($entries:tt)+ }) => {
        listed! { $(#[$about])* $list($kind) { $($entries)+ } }
        listed! { @mut $list $kind $($entries)+ }
    };
    (
        $(#[$about:meta])*
        $list:ident($kind:ident) {
            $($(#[$doc:meta])* $variant:ident = $name:literal, $file:ident;)+
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "kind")]
        pub enum $list {
            $(
                $(#[$doc])*
                #[serde(rename = $name)]
                $variant($variant),
            )+
        }

        impl $list {
            /// The name in a configuration, one sentence, and the reference of every entry.
            pub const LIST: &'static [$crate::list::Entry] = &[$($file::ORIGIN.named($name),)+];

            /// The name in a configuration.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                }
            }

            fn inner(&self) -> &dyn $kind {
                match self {
                    $(Self::$variant(entry) => entry,)+
                }
            }
        }
    };
    (@mut $list:ident $kind:ident $($(#[$doc:meta])* $variant:ident = $name:literal, $file:ident;)+) => {
        impl $list {
            fn inner_mut(&mut self) -> &mut dyn $kind {
                match self {
                    $(Self::$variant(entry) => entry,)+
                }
            }
        }
    };
}
pub(crate) use listed;
