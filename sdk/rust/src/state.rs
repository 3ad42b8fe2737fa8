//! The state of a component as bytes.

/// A small state of fixed size for `save` and `load`: a number, or a tuple of states. Its bytes are the numbers, little-endian,
/// one behind the other.
pub trait State: Sized {
    fn put(&self, to: &mut Vec<u8>);
    /// Takes the state off the front of the bytes; None if they are too few.
    fn take(from: &mut &[u8]) -> Option<Self>;
}

macro_rules! number_state {
    ($($number:ty)*) => {$(
        impl State for $number {
            fn put(&self, to: &mut Vec<u8>) {
                to.extend(self.to_le_bytes());
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                let (first, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(<$number>::from_le_bytes(*first))
            }
        }
    )*};
}

number_state!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);

macro_rules! tuple_state {
    ($($part:ident $at:tt),*) => {
        impl<$($part: State),*> State for ($($part,)*) {
            fn put(&self, to: &mut Vec<u8>) {
                $(self.$at.put(to);)*
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(($($part::take(from)?,)*))
            }
        }
    };
}

tuple_state!(A 0, B 1);
tuple_state!(A 0, B 1, C 2);
tuple_state!(A 0, B 1, C 2, D 3);

/// The bytes of a state, for `save`.
pub fn pack(state: &impl State) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.put(&mut bytes);
    bytes
}

/// Replaces a state by the one that `pack` made the bytes of, for `load`. If they are too few or too many it is left as it was, and
/// false is returned.
pub fn unpack<S: State>(state: &mut S, mut from: &[u8]) -> bool {
    match S::take(&mut from) {
        Some(packed) if from.is_empty() => {
            *state = packed;
            true
        }
        _ => false,
    }
}
