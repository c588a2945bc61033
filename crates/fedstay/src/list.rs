//! Lists (of rules, of behaviours, of data sets …): an enum with one variant per kind, and what is
//! known about each kind without anybody repeating it.

use serde::Serialize;
use serde::de::value::{Error as Unreadable, MapDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, Visitor};
use std::fmt;

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
pub struct Origin {
    /// What it does, in half a sentence.
    pub about: &'static str,
    /// Where it comes from; empty if it is our own.
    pub reference: &'static str,
}

impl Origin {
    /// The entry, under its name in the list.
    pub const fn named(self, name: &'static str) -> Entry {
        Entry { name, about: self.about, reference: self.reference }
    }
}

/// An enum that is a list: what [`listed!`](crate::listed) says about it.
pub trait Listed: Default + DeserializeOwned + 'static {
    /// The key that names a kind in a configuration: `kind`, but `optimiser` for the server.
    const KEY: &'static str;
    /// Every kind.
    const LIST: &'static [Entry];
    /// Other names for kinds.
    const ALIASES: &'static [&'static str];

    /// The name of its kind; `None` for one from outside the list.
    fn kind(&self) -> Option<&'static str>;

    /// The name under which a kind with this name or alias is listed.
    fn listed_as(name: &str) -> Option<&'static str>;

    /// The parameters of a kind, by the names of its struct's fields; none for a kind that is not
    /// listed.
    fn parameters(kind: &str) -> Parameters;

    /// The kind with this name or alias, with its default parameters; `None` if there is no such kind,
    /// or it needs a parameter.
    fn named(name: &str) -> Option<Self> {
        let table = MapDeserializer::<_, Unreadable>::new([(Self::KEY, name)].into_iter());
        Self::deserialize(table).ok()
    }
}

/// The parameters of a kind, as its struct declares them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parameters {
    /// All of them.
    pub all: &'static [&'static str],
    /// The first that has no default.
    pub needed: Option<&'static str>,
}

impl Parameters {
    /// Those of a struct whose `Deserialize` is derived: it is asked for its fields.
    pub fn of<T: DeserializeOwned>() -> Self {
        let empty = MapDeserializer::new(std::iter::empty::<((), ())>());
        let asked = |answer: Result<T, FieldNames>| answer.err().unwrap_or_default();
        let FieldNames { all, .. } = asked(T::deserialize(Fields));
        Self { all, needed: asked(T::deserialize(empty)).needed }
    }
}

/// What a struct says about its fields: the error of reading it from nothing.
#[derive(Debug, Default)]
struct FieldNames {
    all: &'static [&'static str],
    needed: Option<&'static str>,
}

impl fmt::Display for FieldNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl std::error::Error for FieldNames {}

impl de::Error for FieldNames {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::default()
    }

    fn missing_field(field: &'static str) -> Self {
        Self { needed: Some(field), ..Self::default() }
    }
}

/// Reads nothing: it takes down which fields a struct asks for.
struct Fields;

impl<'de> Deserializer<'de> for Fields {
    type Error = FieldNames;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, FieldNames> {
        Err(FieldNames::default())
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        all: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, FieldNames> {
        Err(FieldNames { all, ..FieldNames::default() })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Makes the enum of a list, and everything that is the same for all lists:
///
/// ```text
/// /// Every rule, under the name it has in a configuration.
/// pub enum Rule: deref mut Aggregator, "kind", Retain {
///     /// What it is.
///     Variant(Type) = "name" | "another name", file::ORIGIN;
/// }
/// ```
///
/// `Type` is the struct with the parameters; the file says in an [`Origin`](crate::list::Origin) what the
/// kind does. Behind the colon stand the trait that all of them have, the key that names the kind, and the
/// type of the default. `deref` makes the enum an ordinary user of the trait; without it there is a
/// private `inner()`. `mut` is for traits with methods that change the entry. A variant outside of the
/// list, which no configuration can name, comes last, behind a `+`: a type that dereferences to
/// the trait and has a `name`.
#[doc(hidden)]
#[macro_export]
macro_rules! listed {
    (
        $(#[$about:meta])*
        pub enum $list:ident: $($how:ident)+, $key:literal, $default:ident {
            $(
                $(#[$doc:meta])*
                $variant:ident($type:ident) = $name:literal $(| $alias:literal)*, $origin:expr;
            )+
            $(
                +
                $(#[$extra_doc:meta])*
                $extra:ident($extra_type:ident)
            )?
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = $key)]
        pub enum $list {
            $(
                $(#[$doc])*
                #[serde(rename = $name $(, alias = $alias)*)]
                $variant($type),
            )+
            $(
                $(#[$extra_doc])*
                #[serde(skip)]
                $extra($extra_type),
            )?
        }

        impl $list {
            /// The name in a configuration, one sentence, and the reference of every kind.
            pub const LIST: &'static [$crate::list::Entry] = &[$($origin.named($name),)+];

            /// Other names under which a configuration may ask for a kind.
            pub const ALIASES: &'static [&'static str] = &[$($($alias,)*)+];

            /// The kind with this name or alias, with its default parameters.
            pub fn named(name: &str) -> Option<Self> {
                <Self as $crate::list::Listed>::named(name)
            }
        }

        impl $crate::list::Listed for $list {
            const KEY: &'static str = $key;
            const LIST: &'static [$crate::list::Entry] = Self::LIST;
            const ALIASES: &'static [&'static str] = Self::ALIASES;

            fn kind(&self) -> Option<&'static str> {
                match self {
                    $(Self::$variant(_) => Some($name),)+
                    $(Self::$extra(_) => None,)?
                }
            }

            fn listed_as(name: &str) -> Option<&'static str> {
                match name {
                    $($name $(| $alias)* => Some($name),)+
                    _ => None,
                }
            }

            fn parameters(kind: &str) -> $crate::list::Parameters {
                match kind {
                    $($name => $crate::list::Parameters::of::<$type>(),)+
                    _ => Default::default(),
                }
            }
        }

        impl Default for $list {
            fn default() -> Self {
                $default::default().into()
            }
        }

        $(
            impl From<$type> for $list {
                fn from(entry: $type) -> Self {
                    Self::$variant(entry)
                }
            }
        )+

        $crate::listed! { @name $list [$($variant $name)+] $($extra)? }
        $crate::listed! { @$($how)+, $list [$($variant)+] $($extra)? }
    };
    (@name $list:ident [$($variant:ident $name:literal)+]) => {
        impl $list {
            /// The name in a configuration.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                }
            }
        }
    };
    (@name $list:ident [$($variant:ident $name:literal)+] $extra:ident) => {
        impl $list {
            /// The name in a configuration, or what one from outside calls itself.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)+
                    Self::$extra(entry) => entry.name(),
                }
            }
        }
    };
    (@deref mut $kind:ident, $list:ident [$($variant:ident)+] $($extra:ident)?) => {
        $crate::listed! { @deref $kind, $list [$($variant)+] $($extra)? }

        impl std::ops::DerefMut for $list {
            fn deref_mut(&mut self) -> &mut (dyn $kind + 'static) {
                match self {
                    $(Self::$variant(entry) => entry,)+
                    $(Self::$extra(entry) => &mut **entry,)?
                }
            }
        }
    };
    (@deref $kind:ident, $list:ident [$($variant:ident)+] $($extra:ident)?) => {
        impl std::ops::Deref for $list {
            type Target = dyn $kind;

            fn deref(&self) -> &(dyn $kind + 'static) {
                match self {
                    $(Self::$variant(entry) => entry,)+
                    $(Self::$extra(entry) => &**entry,)?
                }
            }
        }
    };
    (@mut $kind:ident, $list:ident [$($variant:ident)+]) => {
        $crate::listed! { @$kind, $list [$($variant)+] }

        impl $list {
            fn inner_mut(&mut self) -> &mut dyn $kind {
                match self {
                    $(Self::$variant(entry) => entry,)+
                }
            }
        }
    };
    (@$kind:ident, $list:ident [$($variant:ident)+]) => {
        impl $list {
            fn inner(&self) -> &dyn $kind {
                match self {
                    $(Self::$variant(entry) => entry,)+
                }
            }
        }
    };
}
pub(crate) use listed;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rule, Schedule};

    #[test]
    fn a_kind_has_the_parameters_of_its_struct_and_says_which_one_it_needs() {
        let of = |kind| <Rule as Listed>::parameters(kind);
        assert_eq!(of("q-fedavg").needed, None);
        assert!(of("q-fedavg").all.contains(&"q") && !of("fedavg").all.contains(&"q"));
        let trace = <Schedule as Listed>::parameters("trace");
        assert_eq!((trace.all, trace.needed), (&["path"][..], Some("path")));
        assert_eq!(of("custom"), Parameters::default());
    }

    #[test]
    fn a_name_or_an_alias_is_enough_unless_a_parameter_is_needed() {
        assert_eq!(Rule::named("fedmgda+"), Rule::named("fedmgda-plus"));
        assert_eq!(<Rule as Listed>::listed_as("fedmgda+"), Some("fedmgda-plus"));
        assert_eq!((Rule::named("custom"), Schedule::named("trace")), (None, None));
        assert_eq!(Schedule::named("always"), Some(Schedule::default()));
    }
}
