//! Floating-point numbers of 16 bits out of those of 64, rounded once, to nearest and to even.
//!
//! Not for arithmetic.

/// A format of 16 bits: a sign, an exponent with a bias of half its range, and a fraction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Format {
    fraction_bits: u32,
}

/// IEEE 754 binary16.
pub(super) const FLOAT16: Format = Format { fraction_bits: 10 };
/// The upper half of binary32.
pub(super) const BFLOAT16: Format = Format { fraction_bits: 7 };

const FRACTION_BITS: u32 = 52;
const BIAS: i32 = 1023;

impl Format {
    /// The bits of the number that is nearest to `value`; infinity beyond the largest. A NaN stays one.
    pub(super) fn encode(self, value: f64) -> u16 {
        let bits = value.to_bits();
        let sign = u16::from(value.is_sign_negative()) << 15;
        let exponent_bits = 15 - self.fraction_bits;
        let bias = (1 << (exponent_bits - 1)) - 1;
        let infinity = ((1 << exponent_bits) - 1) << self.fraction_bits;
        if value.is_nan() {
            return sign | infinity | 1 << (self.fraction_bits - 1);
        }
        if value.is_infinite() {
            return sign | infinity;
        }
        let exponent = i32::try_from(bits >> FRACTION_BITS & 0x7ff).unwrap_or(0) - BIAS;
        let significand = bits & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS;
        // Below the smallest exponent the fraction loses bits; a number of the smallest exponents of 64 bits is far below.
        let lost = u32::try_from((1 - bias - exponent).max(0)).unwrap_or(0);
        let shift = FRACTION_BITS - self.fraction_bits + lost;
        if shift > FRACTION_BITS + 1 {
            return sign;
        }
        let kept = significand >> shift;
        let rest = significand & ((1 << shift) - 1);
        let half = 1 << (shift - 1);
        let rounded = kept + u64::from(rest > half || rest == half && kept & 1 == 1);
        // With the hidden bit in it, the fraction carries into the exponent by itself.
        let biased = u64::try_from(exponent + bias - 1).unwrap_or(0) << self.fraction_bits;
        let magnitude = (biased + rounded).min(infinity.into());
        sign | u16::try_from(magnitude).unwrap_or(infinity)
    }

    /// Whether the bits are those of an infinity.
    pub(super) fn is_infinite(self, bits: u16) -> bool {
        let exponent_bits = 15 - self.fraction_bits;
        bits & 0x7fff == ((1 << exponent_bits) - 1) << self.fraction_bits
    }

    /// The number that bits stand for.
    pub(super) fn decode(self, bits: u16) -> f64 {
        let exponent_bits = 15 - self.fraction_bits;
        let bias = (1 << (exponent_bits - 1)) - 1;
        let exponent = i32::from(bits >> self.fraction_bits & ((1 << exponent_bits) - 1));
        let fraction = f64::from(bits & ((1 << self.fraction_bits) - 1)) / f64::from(1 << self.fraction_bits);
        let magnitude = match exponent {
            0 => fraction * 2.0_f64.powi(1 - bias),
            _ if exponent == (1 << exponent_bits) - 1 => {
                if fraction == 0.0 {
                    f64::INFINITY
                } else {
                    f64::NAN
                }
            }
            _ => (1.0 + fraction) * 2.0_f64.powi(exponent - bias),
        };
        if bits >> 15 == 1 { -magnitude } else { magnitude }
    }
}
