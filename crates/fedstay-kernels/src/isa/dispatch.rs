//! One function, compiled for every instruction set.

/// Types of which there is one for every width of vectors: registers of one kind of numbers.
pub(crate) trait Family {
    /// For every machine of the target.
    type Portable;
    /// For machines with AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    type Avx2;
    /// For machines with AVX-512.
    #[cfg(target_arch = "x86_64")]
    type Avx512;
}

/// Declares a function that is compiled for every instruction set, and whose first argument is the
/// [`Isa`](crate::Isa) to use. There are two forms:
///
/// - `fn name(arguments) { body }`: plain, branch-free Rust that the compiler vectorises. It is never
///   contracted to fused multiply-adds, so every version gives the same bits.
/// - `fn name<T: Bound>(arguments) -> Result { checks } = body over Family`: `body::<V, T>` with the
///   vectors `V` of a [`Family`]. The body may rely on what the checks, which may be left out, assert.
macro_rules! dispatch {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        $vis fn $name(isa: $crate::Isa, $($arg: $type),*) {
            /// # Safety
            /// None is needed.
            #[inline(always)]
            #[allow(clippy::extra_unused_type_parameters, reason = "bodies of the other form use it")]
            unsafe fn plain<V>($($arg: $type),*) $body

            $crate::isa::dispatch! { @ isa, plain, (), [], ($($arg: $type),*), [] }
        }
    };
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$($generic:ident: $bound:path),*>)?
        ($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? $({ $($check:tt)* })?
        = $body:ident over $family:ty
    ) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments, reason = "the instruction set is one more")]
        $vis fn $name $(<$($generic: $bound),*>)? (
            isa: $crate::Isa, $($arg: $type),*
        ) $(-> $result)? {
            $($($check)*)?
            $crate::isa::dispatch! {
                @ isa, $body, $family, [$($($generic: $bound),*)?], ($($arg: $type),*), [$(-> $result)?]
            }
        }
    };
    (@ $isa:ident, $body:ident, $family:ty, [$($generic:ident: $bound:path),*],
        ($($arg:ident: $type:ty),*), [$($result:tt)*]
    ) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        #[allow(clippy::too_many_arguments, reason = "as many as its caller has")]
        fn avx2<$($generic: $bound),*>($($arg: $type),*) $($result)* {
            // SAFETY: the instructions are those of this function, and the caller has checked the rest.
            unsafe {
                $body::<<$family as $crate::isa::Family>::Avx2, $($generic),*>($($arg),*)
            }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,avx512f")]
        #[allow(clippy::too_many_arguments, reason = "as above")]
        fn avx512<$($generic: $bound),*>($($arg: $type),*) $($result)* {
            // SAFETY: as above.
            unsafe {
                $body::<<$family as $crate::isa::Family>::Avx512, $($generic),*>($($arg),*)
            }
        }
        match $isa.level() {
            // SAFETY: an `Isa` exists only where it was detected.
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Level::Avx512 | $crate::isa::Level::Vnni => unsafe {
                avx512::<$($generic),*>($($arg),*)
            },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Level::Avx2 => unsafe { avx2::<$($generic),*>($($arg),*) },
            // SAFETY: needs nothing that a machine may lack; the caller has checked the rest.
            _ => unsafe {
                $body::<<$family as $crate::isa::Family>::Portable, $($generic),*>($($arg),*)
            },
        }
    }};
}
pub(crate) use dispatch;

/// For code without vectors of its own.
impl Family for () {
    type Portable = ();
    #[cfg(target_arch = "x86_64")]
    type Avx2 = ();
    #[cfg(target_arch = "x86_64")]
    type Avx512 = ();
}
