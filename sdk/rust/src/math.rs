//! Elementary functions with the same bits on every machine and in every language: the functions of rl_math.h, in the same order of the same
//! IEEE operations.
//!
//! The methods of f64 take the C library's functions, which change a last digit from target to target and version to version, and with it
//! each trajectory of a chaotic environment. What is not a number comes back as one NaN, with one pattern of bits. Errors are at most 0.9
//! units of the last place (1.1 for tan, 1.4 for atan2, 2.2 for asin and acos, 2.6 for tanh).

// Numbers are written with the digits of rl_math.h, also where core has a constant of the same bits.
#![allow(clippy::approx_constant)]

const INF: f64 = f64::INFINITY;

/// The one NaN of all functions.
fn nan() -> f64 {
    f64::from_bits(0x7ff8_0000_0000_0000)
}

/// x without its sign.
pub fn abs(x: f64) -> f64 {
    x.abs()
}

/// What a function makes of a number, and the one NaN of all others.
fn one(x: f64, f: fn(f64) -> f64) -> f64 {
    if x.is_nan() {
        return nan();
    }
    f(x)
}

/// The greatest whole number that is not above x.
pub fn floor(x: f64) -> f64 {
    one(x, f64::floor)
}

/// The least whole number that is not below x.
pub fn ceil(x: f64) -> f64 {
    one(x, f64::ceil)
}

/// x without its fraction.
pub fn trunc(x: f64) -> f64 {
    one(x, f64::trunc)
}

/// The nearest whole number, halves away from zero.
pub fn round(x: f64) -> f64 {
    let whole = trunc(x);
    if (x - whole).abs() >= 0.5 {
        return whole + 1f64.copysign(x);
    }
    whole
}

/// The square root, the NaN below zero.
pub fn sqrt(x: f64) -> f64 {
    const ZERO_BELOW: u64 = 1 << 63;
    // Bits are asked, and not x >= 0: the compiler would see that both ways are a NaN, and take the processor's own.
    match x.to_bits() {
        0..=0x7ff0_0000_0000_0000 | ZERO_BELOW => x.sqrt(),
        _ => nan(),
    }
}

/// x - n*y, n being x/y without its fraction, with the sign of x: a long division, each step exact.
pub fn fmod(x: f64, y: f64) -> f64 {
    let (mut rest, divisor) = (x.abs(), y.abs());
    let mut part = divisor;
    if rest.is_nan() || rest == INF || divisor.is_nan() || divisor == 0.0 {
        return nan();
    }
    if rest < divisor {
        return x;
    }
    while rest - part >= part {
        part += part;
    }
    while part >= divisor {
        if rest >= part {
            rest -= part;
        }
        part *= 0.5;
    }
    rest.copysign(x)
}

/// The number hi + lo, lo being at most half a unit of hi's last place.
#[derive(Clone, Copy)]
struct Twice {
    hi: f64,
    lo: f64,
}

const fn pair(hi: f64, lo: f64) -> Twice {
    Twice { hi, lo }
}

/// a + b without error.
fn sum(a: f64, b: f64) -> Twice {
    let s = a + b;
    let of_b = s - a;
    let of_a = s - of_b;
    pair(s, (a - of_a) + (b - of_b))
}

/// a * b without error, where a and b are below 2^900.
fn product(a: f64, b: f64) -> Twice {
    const SPLIT: f64 = 134217729.0; // 2^27 + 1 splits 53 bits into halves
    let (p, ta, tb) = (a * b, a * SPLIT, b * SPLIT);
    let (ah, bh) = (ta - (ta - a), tb - (tb - b));
    let (al, bl) = (a - ah, b - bh);
    pair(p, ((ah * bh - p) + ah * bl + al * bh) + al * bl)
}

impl Twice {
    fn add(self, b: Twice) -> Twice {
        let s = sum(self.hi, b.hi);
        sum(s.hi, s.lo + (self.lo + b.lo))
    }

    fn mul(self, b: Twice) -> Twice {
        let p = product(self.hi, b.hi);
        sum(p.hi, p.lo + (self.hi * b.lo + self.lo * b.hi))
    }
}

/// |x| < 2^51 to the nearest whole number, halves to even.
fn nearest(x: f64) -> f64 {
    const MAGIC: f64 = 6755399441055744.0;
    (x + MAGIC) - MAGIC
}

/// 2^k, for exponents of normal numbers.
fn power(k: i32) -> f64 {
    f64::from_bits(((1023 + k) as u64) << 52)
}

/// x * 2^k for |k| < 2000, rounded once if x is near 1.
fn scale(x: f64, k: i32) -> f64 {
    let half = k / 2;
    x * power(half) * power(k - half)
}

/// c[0] + z*(c[1] + z*(c[2] + …)).
fn horner<const N: usize>(z: f64, c: [f64; N]) -> f64 {
    c[..N - 1].iter().rev().fold(c[N - 1], |s, c| c + z * s)
}

const HALF_PI: Twice = pair(1.5707963267948966, 6.123233995736766e-17);

/// Digits of 2/pi that matter to one argument, and their product with a mantissa.
const WORDS: usize = 7;
const LIMBS: usize = WORDS + 3;

#[rustfmt::skip]
const TWO_OVER_PI: [u32; 38] = [
    0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab, 0xdebb_c561,
    0xb724_6e3a, 0x424d_d2e0, 0x0649_2eea, 0x09d1_921c, 0xfe1d_eb1c, 0xb129_a73e, 0xe882_35f5, 0x2ebb_4484,
    0xe99c_7026, 0xb45f_7e41, 0x3991_d639, 0x8353_39f4, 0x9c84_5f8b, 0xbdf9_283b, 0x1ff8_97ff, 0xde05_980f,
    0xef2f_118b, 0x5a0a_6d1f, 0x6d36_7ecf, 0x27cb_09b7, 0x4f46_3f66, 0x9e5f_ea2d, 0x7527_bac7, 0xebe5_f17b,
    0x3d07_39f7, 0x8a52_92ea, 0x6bfb_5fb1, 0x1f8d_5d08, 0x5603_3046, 0xfc7b_6bab,
];

/// mantissa * words of 2/pi, lowest first.
fn digits(mantissa: u64, skip: usize) -> [u32; LIMBS] {
    let mut limb = [0u32; LIMBS];
    for half in 0..2 {
        let (mut carry, m) = (0u64, (mantissa >> (32 * half)) as u32 as u64);
        for i in 0..WORDS {
            carry += m * TWO_OVER_PI[skip + WORDS - 1 - i] as u64 + limb[i + half] as u64;
            limb[i + half] = carry as u32;
            carry >>= 32;
        }
        limb[WORDS + half] = carry as u32;
    }
    limb
}

/// `quarter` for any x: the digits of 2/pi that matter, times the mantissa, in whole numbers.
fn quarter_far(x: f64) -> (Twice, u32) {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.abs().to_bits();
    let exponent = (bits >> 52) as i32 - 1075;
    let skip = ((exponent - 2).max(0) / 32) as usize; // words of which every bit is a multiple of four turns
    let limb = digits(bits & MANTISSA | 1 << 52, skip);
    // The binary point is this many bits up; quarters lie above it, the fraction of a quarter below.
    let point = (32 * (skip + WORDS)) as i32 - exponent;
    let mut part = [0u32; 5];
    for (i, part) in part.iter_mut().enumerate() {
        let at = (point / 32) as usize - i;
        let word = |at: usize| limb.get(at).map_or(0, |&word| word as u64);
        *part = ((word(at) | word(at + 1) << 32) >> (point % 32)) as u32;
    }
    let flip = 0u32.wrapping_sub(part[1] >> 31); // beyond the half: the next quarter, and back
    let two = |i: usize| ((part[i] ^ flip) as u64) << 32 | (part[i + 1] ^ flip) as u64;
    let (high, low) = (two(1), two(3));
    let (hi, lo) = ((high >> 11) as f64 * power(-53), ((high & 0x7ff) << 53 | low >> 11) as f64 * power(-117));
    let sign = if (x < 0.0) != (flip != 0) { -1.0 } else { 1.0 };
    let quarter = part[0].wrapping_sub(flip); // flip is -1
    let quarter = if x < 0.0 { 0u32.wrapping_sub(quarter) } else { quarter };
    (pair(sign * hi, sign * lo).mul(HALF_PI), quarter & 3)
}

/// Takes the multiple of pi/2 nearest to a finite x away and says which of four it was.
fn quarter(x: f64) -> (Twice, u32) {
    if x.abs() <= 0.7853981633974483 {
        return (pair(x, 0.0), 0);
    }
    if x.abs() < power(20) {
        // pi/2 in three parts, of which k times the first two is exact
        let k = nearest(x * 0.6366197723675814);
        let d = sum(x - k * 1.5707963267341256, -(k * 6.077100506303966e-11));
        let r = sum(d.hi, d.lo - k * 2.0222662487959506e-21);
        if r.hi.abs() > power(-30) {
            return (r, k as i32 as u32 & 3);
        }
    }
    quarter_far(x)
}

/// Taylor's series for |r| <= pi/4; the sum of the result is a little more exact than an f64.
fn sin_near(r: Twice) -> Twice {
    let (x, z) = (r.hi, r.hi * r.hi);
    let c = [
        -1.0 / 6.0,
        1.0 / 120.0,
        -1.0 / 5040.0,
        1.0 / 362880.0,
        -1.0 / 39916800.0,
        1.0 / 6227020800.0,
        -1.0 / 1307674368000.0,
        1.0 / 355687428096000.0,
    ];
    pair(x, x * z * horner(z, c) + r.lo * (1.0 - 0.5 * z))
}

/// The same of the cosine.
fn cos_near(r: Twice) -> Twice {
    let (x, z) = (r.hi, r.hi * r.hi);
    let (half, hi) = (0.5 * z, 1.0 - 0.5 * z);
    let c = [
        1.0 / 24.0,
        -1.0 / 720.0,
        1.0 / 40320.0,
        -1.0 / 3628800.0,
        1.0 / 479001600.0,
        -1.0 / 87178291200.0,
        1.0 / 20922789888000.0,
        -1.0 / 6402373705728000.0,
    ];
    pair(hi, ((1.0 - hi) - half) + (z * z * horner(z, c) - x * r.lo))
}

/// The sine of x, or of x + turns quarters.
fn turned(x: f64, turns: u32) -> f64 {
    if x.is_nan() || x.abs() == INF {
        return nan();
    }
    let (r, quarter) = quarter(x);
    let turns = turns + quarter;
    let r = if turns & 1 != 0 { cos_near(r) } else { sin_near(r) };
    if turns & 2 != 0 {
        return -(r.hi + r.lo);
    }
    r.hi + r.lo
}

/// The sine of x.
pub fn sin(x: f64) -> f64 {
    if x.abs() < power(-27) {
        return x;
    }
    turned(x, 0)
}

/// The cosine of x.
pub fn cos(x: f64) -> f64 {
    turned(x, 1)
}

/// The tangent of x.
pub fn tan(x: f64) -> f64 {
    if x.abs() < power(-27) {
        return x;
    }
    if x.is_nan() || x.abs() == INF {
        return nan();
    }
    let (r, turns) = quarter(x);
    let (s, c) = (sin_near(r), cos_near(r));
    let (mut s, mut c) = (sum(s.hi, s.lo), sum(c.hi, c.lo));
    if turns & 1 != 0 {
        (s, c) = (pair(-c.hi, -c.lo), s);
    }
    let q = s.hi / c.hi;
    let back = product(q, c.hi);
    q + ((s.hi - back.hi) - back.lo + (s.lo - q * c.lo)) / c.hi
}

/// Arc tangents of sixteenths.
#[rustfmt::skip]
const SIXTEENTHS: [(f64, f64); 17] = [
    (0.0, 0.0),
    (0.0, 0.0),
    (0.12435499454676144, -3.1253241424539383e-18),
    (0.18534794999569476, 4.180692268843079e-18),
    (0.24497866312686414, 1.0698755618734451e-17),
    (0.3028848683749714, -1.1010827903001369e-17),
    (0.35877067027057225, -2.4623815582638635e-17),
    (0.4124104415973873, -1.587652227770689e-17),
    (0.4636476090008061, 2.2698777452961687e-17),
    (0.5123894603107377, -2.5462781472855804e-17),
    (0.5585993153435624, -5.4556305485916264e-18),
    (0.6022873461349642, 2.950430737228402e-17),
    (0.6435011087932844, 1.5834785051444286e-17),
    (0.6823165548747481, 6.943223671560008e-18),
    (0.7188299996216245, -2.1478388444456983e-17),
    (0.7531512809621944, -2.4256934659182068e-17),
    (0.7853981633974483, 3.061616997868383e-17),
];

/// The smaller and the larger of two coordinates, brought to numbers whose quotient is theirs.
fn smaller(ax: f64, ay: f64) -> (f64, f64) {
    let (mut n, mut d) = if ay < ax { (ay, ax) } else { (ax, ay) };
    if d == INF {
        (n, d) = ((n == d) as u8 as f64, 1.0);
    }
    if d == 0.0 {
        d = 1.0; // both are zero
    }
    if d > power(900) {
        return (n * power(-200), d * power(-200));
    }
    if d < power(-900) {
        return (n * power(200), d * power(200));
    }
    (n, d)
}

/// The angle of a point whose coordinates are n <= d. It is brought near the next sixteenth c, as
/// atan(n/d) = atan(c) + atan((n - c*d) / (d + c*n)).
fn first_eighth(n: f64, d: f64) -> Twice {
    let mut i = (16.0 * n / d + 0.5) as usize;
    let (mut t, c) = (n / d, 0.0625 * i as f64);
    if i < 2 {
        i = 0;
    } else {
        let top = f64::from_bits(d.to_bits() & !0x7ff_ffff); // c times this is exact
        t = ((n - c * top) - c * (d - top)) / (d + c * n);
    }
    let z = t * t;
    let c = [-1.0 / 3.0, 1.0 / 5.0, -1.0 / 7.0, 1.0 / 9.0, -1.0 / 11.0, 1.0 / 13.0, -1.0 / 15.0, 1.0 / 17.0];
    let angle = sum(SIXTEENTHS[i].0, t);
    pair(angle.hi, angle.lo + (SIXTEENTHS[i].1 + t * z * horner(z, c)))
}

/// The angle of the point (x, y), from -pi to pi.
pub fn atan2(y: f64, x: f64) -> f64 {
    let (ax, ay) = (x.abs(), y.abs());
    if ax.is_nan() || ay.is_nan() {
        return nan();
    }
    let (n, d) = smaller(ax, ay);
    let mut angle = first_eighth(n, d);
    let (behind, steep) = (x.is_sign_negative(), ay > ax);
    // From the axis that is nearest.
    let turns = [if behind { 2.0 } else { 0.0 }, 1.0][steep as usize];
    let sign = if steep == behind { 1.0 } else { -1.0 };
    if turns > 0.0 {
        let base = sum(turns * HALF_PI.hi, sign * angle.hi);
        angle = pair(base.hi, base.lo + (turns * HALF_PI.lo + sign * angle.lo));
    }
    (angle.hi + angle.lo).copysign(y)
}

/// The angle whose tangent is x.
pub fn atan(x: f64) -> f64 {
    atan2(x, 1.0)
}

/// The angle whose sine is x, the NaN beyond 1.
pub fn asin(x: f64) -> f64 {
    atan2(x, sqrt((1.0 - x) * (1.0 + x)))
}

/// The angle whose cosine is x, the NaN beyond 1.
pub fn acos(x: f64) -> f64 {
    atan2(sqrt((1.0 - x) * (1.0 + x)), x)
}

const LN2_HI: f64 = 0.6931471805598903; // 42 bits: times an exponent it is exact
const LN2_LO: f64 = 5.497923018708371e-14;

/// q and k with e^(hi+lo) = 2^k * (1 + q), for |hi| < 800.
fn exp_parts(hi: f64, lo: f64) -> (f64, i32) {
    let n = nearest(hi * 1.4426950408889634);
    let r = sum(hi - n * LN2_HI, lo - n * LN2_LO);
    let (x, z) = (r.hi, r.hi * r.hi);
    let c = [
        0.5,
        1.0 / 6.0,
        1.0 / 24.0,
        1.0 / 120.0,
        1.0 / 720.0,
        1.0 / 5040.0,
        1.0 / 40320.0,
        1.0 / 362880.0,
        1.0 / 3628800.0,
        1.0 / 39916800.0,
        1.0 / 479001600.0,
        1.0 / 6227020800.0,
    ];
    (x + (z * horner(x, c) + r.lo), n as i32)
}

/// e^(hi+lo).
fn exp_twice(hi: f64, lo: f64) -> f64 {
    if hi > 710.0 {
        return INF;
    }
    if hi < -746.0 {
        return 0.0;
    }
    let (q, k) = exp_parts(hi, lo);
    scale(1.0 + q, k)
}

/// e to the power of x.
pub fn exp(x: f64) -> f64 {
    if x.is_nan() {
        return nan();
    }
    exp_twice(x, 0.0)
}

/// The hyperbolic tangent of x.
pub fn tanh(x: f64) -> f64 {
    let a = x.abs();
    if x.is_nan() {
        return nan();
    }
    if a < power(-27) {
        return x;
    }
    if a > 20.0 {
        return 1f64.copysign(x);
    }
    let (q, k) = exp_parts(2.0 * a, 0.0);
    let two = scale(1.0, k);
    let less = two * q + (two - 1.0); // e^2a - 1
    let size = if a < 0.5 { less / (less + 2.0) } else { 1.0 - 2.0 / (less + 2.0) };
    size.copysign(x)
}

/// f and k with x = 2^k * (1 + f) and 1 + f near 1, for a finite x above zero.
fn ln_parts(x: f64) -> (f64, i32) {
    let lift = if x < power(-1022) { 54 } else { 0 };
    let bits = (x * power(lift)).to_bits();
    let mantissa = bits & ((1 << 52) - 1);
    let over = (mantissa > 0x6_a09e_667f_3bcd) as i32; // above the root of two
    (f64::from_bits(mantissa | ((1023 - over) as u64) << 52) - 1.0, (bits >> 52) as i32 - 1023 - lift + over)
}

/// The natural logarithm, the NaN below zero. It uses log(1+f) = 2*atanh(s) with s = f / (2+f), where 2*s = f - s*f.
pub fn ln(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return nan();
    }
    if x == 0.0 {
        return -INF;
    }
    if x == INF {
        return x;
    }
    let (f, k) = ln_parts(x);
    let (k, s) = (k as f64, f / (2.0 + f));
    let (z, half) = (s * s, 0.5 * f * f);
    let c = [
        2.0 / 3.0,
        2.0 / 5.0,
        2.0 / 7.0,
        2.0 / 9.0,
        2.0 / 11.0,
        2.0 / 13.0,
        2.0 / 15.0,
        2.0 / 17.0,
        2.0 / 19.0,
        2.0 / 21.0,
    ];
    let series = z * horner(z, c);
    k * LN2_HI + (f - (half - (s * (half + series) + k * LN2_LO)))
}

/// The logarithm to some 100 bits, for pow.
fn ln_twice(x: f64) -> Twice {
    let (f, k) = ln_parts(x);
    let (k, below) = (k as f64, sum(2.0, f));
    let q = f / below.hi;
    let back = product(q, below.hi);
    let s = sum(q, ((f - back.hi) - back.lo - q * below.lo) / below.hi);
    let z = s.mul(s);
    let c = [1.0 / 7.0, 1.0 / 9.0, 1.0 / 11.0, 1.0 / 13.0, 1.0 / 15.0, 1.0 / 17.0, 1.0 / 19.0, 1.0 / 21.0, 1.0 / 23.0];
    let series = pair(0.2, -1.1102230246251566e-17).add(z.mul(pair(horner(z.hi, c), 0.0)));
    let series = pair(0.3333333333333333, 1.850371707708594e-17).add(z.mul(series));
    let rest = s.mul(z).mul(series);
    let log = pair(2.0 * s.hi, 2.0 * s.lo).add(pair(2.0 * rest.hi, 2.0 * rest.lo));
    sum(k * LN2_HI, k * LN2_LO).add(log)
}

/// x to the power of y, with the special cases of C.
pub fn pow(x: f64, y: f64) -> f64 {
    if y == 0.0 || x == 1.0 {
        return 1.0;
    }
    if x.is_nan() || y.is_nan() {
        return nan();
    }
    let (a, ay) = (x.abs(), y.abs());
    let (negative, whole) = (x.is_sign_negative(), ay >= power(53) || trunc(y) == y);
    let sign = if negative && ay < power(53) && whole && y as i64 & 1 != 0 { -1.0 } else { 1.0 };
    let bound = |large: bool| sign * if large { INF } else { 0.0 };
    if a == 1.0 && (whole || ay == INF) {
        return sign;
    }
    if a == 0.0 || a == INF || ay == INF {
        return bound((a > 1.0) == (y > 0.0));
    }
    if negative && !whole {
        return nan();
    }
    let log = ln_twice(a);
    let t = y * log.hi;
    if t.is_nan() || t.abs() >= 800.0 {
        return bound(t > 0.0);
    }
    let p = product(y, log.hi);
    sign * exp_twice(p.hi, p.lo + y * log.lo)
}
