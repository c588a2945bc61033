//! The macro behind [`Rule`](super::Rule): one line per rule becomes everything that is listed.

/// Makes the enum `Rule` from lines such as
///
/// ```text
/// /// What it is.
/// Variant(Type) = "name" | "another name", file::ORIGIN;
/// ```
///
/// A second variant of a type that is already in the list says so: `Variant(Type, again)`.
macro_rules! rules {
    ($(
        $(#[$doc:meta])*
        $variant:ident($type:ident $(, $again:ident)?) = $name:literal $(| $alias:literal)*,
        $about:expr;
    )+) => {
        /// Every rule, under the name it has in a configuration.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        pub enum Rule {
            $(
                $(#[$doc])*
                #[serde(rename = $name $(, alias = $alias)*)]
                $variant($type),
            )+
            /// A custom rule. No configuration can name it, and it is not serialised: see
            /// [`Aggregator::save`] for how a server that has it is saved.
            #[serde(skip)]
            Custom(CustomRule),
        }

        impl Rule {
            /// The name in a configuration, one sentence, and the reference of every rule.
            pub const LIST: &'static [Entry] = &[
                $($about.named($name),)+
            ];

            /// Other names under which a configuration may ask for a rule.
            pub const ALIASES: &'static [&'static str] = &[$($($alias,)*)+];

            /// The rule with this name or alias, with its default parameters.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($name $(| $alias)* => Some(Self::$variant($type::default())),)+
                    _ => None,
                }
            }

            /// The name in a configuration; for a custom rule what it calls itself, or `custom`.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)+
                    Self::Custom(rule) => rule.name(),
                }
            }

            fn inner(&self) -> &dyn Aggregator {
                match self {
                    $(Self::$variant(rule) => rule,)+
                    Self::Custom(rule) => &*rule.rule,
                }
            }

            fn inner_mut(&mut self) -> &mut dyn Aggregator {
                match self {
                    $(Self::$variant(rule) => rule,)+
                    Self::Custom(rule) => &mut *rule.rule,
                }
            }
        }

        $(rules!(@from $variant $type $($again)?);)+
    };
    (@from $variant:ident $type:ident again) => {};
    (@from $variant:ident $type:ident) => {
        impl From<$type> for Rule {
            fn from(rule: $type) -> Self {
                Self::$variant(rule)
            }
        }
    };
}
pub(super) use rules;
