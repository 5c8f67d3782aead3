//! Values that have a name on the command line and in reports.

/// Makes an enum of such values: `ALL` in order, `as_str`, `Display` and `FromStr`. `$is_none` says
/// what another name is not.
macro_rules! named {
    (
        $(#[$about:meta])*
        $vis:vis enum $type:ident, $is_none:literal {
            $($(#[$doc:meta])* $value:ident = $name:literal,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $type {
            $($(#[$doc])* $value,)+
        }

        impl $type {
            /// All of them, in the order in which they take their turns.
            $vis const ALL: [$type; [$($name),+].len()] = [$($type::$value),+];

            /// The name as it is written on a command line and in a report.
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $($type::$value => $name,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(text: &str) -> $crate::Result<$type> {
                $type::ALL.into_iter().find(|one| one.as_str() == text).ok_or_else(|| {
                    let names = $type::ALL.map($type::as_str).join(", ");
                    $crate::Error::invalid(format!("\"{text}\" {}; there are {names}", $is_none))
                })
            }
        }
    };
}

/// Such values are their names in files.
macro_rules! as_name {
    ($($type:ty),+) => {
        $(
            impl serde::Serialize for $type {
                fn serialize<S: serde::Serializer>(
                    &self,
                    to: S,
                ) -> std::result::Result<S::Ok, S::Error> {
                    to.serialize_str(self.as_str())
                }
            }
            impl<'de> serde::Deserialize<'de> for $type {
                fn deserialize<D: serde::Deserializer<'de>>(
                    from: D,
                ) -> std::result::Result<$type, D::Error> {
                    <String as serde::Deserialize>::deserialize(from)?.parse().map_err(serde::de::Error::custom)
                }
            }
        )+
    };
}

pub(crate) use {as_name, named};

#[cfg(test)]
mod tests {
    named! {
        /// Two values.
        enum Side, "is not a side" {
            /// One.
            Left = "left",
            /// The other.
            Right = "right-hand",
        }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for side in Side::ALL {
            assert_eq!(side.to_string().parse::<Side>().unwrap(), side);
        }
        assert_eq!(format!("{:>6}|", Side::Left), "  left|");
        let error = "middle".parse::<Side>().unwrap_err();
        assert_eq!(error.to_string(), "\"middle\" is not a side; there are left, right-hand");
        assert_eq!(error.kind(), crate::ErrorKind::InvalidOption);
    }
}
