// Hand-written. The functions of rl_math.h, with the same bits on every machine and in every language:
//
//	import * as math from "rlhost-env/math";
//
//	const height = 0.45 * math.sin(3 * x) + 0.55;
//
// Every operation is a single IEEE operation in the order that rl_math.h has, whose comments explain it; the tests compare the bits. The
// functions of AssemblyScript's own Math have the same bits on every machine, too, and other languages have others.

const INFINITE = reinterpret<f64>(0x7ff0000000000000);
const NONE = reinterpret<f64>(0x7ff8000000000000); // the one NaN
const HALF_PI = 1.5707963267948966, HALF_PI_LO = 6.123233995736766e-17;
const TINY = 7.450580596923828e-9; // 2^-27
export const PI: f64 = 3.141592653589793;

// ---- exact functions

export function abs(x: f64): f64 { return Math.abs(x); }
export function floor(x: f64): f64 { return x == x ? Math.floor(x) : NONE; }
export function ceil(x: f64): f64 { return x == x ? Math.ceil(x) : NONE; }
export function trunc(x: f64): f64 { return x == x ? Math.trunc(x) : NONE; }
// round rounds to the nearest whole number, halves away from zero.
export function round(x: f64): f64 { const whole = trunc(x); return abs(x - whole) >= 0.5 ? whole + copysign<f64>(1.0, x) : whole; }
export function sqrt(x: f64): f64 { return x >= 0 ? Math.sqrt(x) : NONE; }
// fmod returns x - n*y, n being x/y without its fraction, with the sign of x.
export function fmod(x: f64, y: f64): f64 {
  let rest = abs(x), part = abs(y);
  const divisor = part;
  if (!(rest < INFINITE) || !(divisor > 0)) return NONE;
  if (rest < divisor) return x;
  while (rest - part >= part) part += part;
  for (; part >= divisor; part *= 0.5) if (rest >= part) rest -= part;
  return copysign<f64>(rest, x);
}

// ---- twice the precision: what is returned plus lo, at most half a unit of its last place

let lo: f64 = 0;
let hi: f64 = 0; // of quarter

@inline function sum(a: f64, b: f64): f64 {
  const s = a + b, ofB = s - a, ofA = s - ofB;
  lo = (a - ofA) + (b - ofB);
  return s;
}
@inline function product(a: f64, b: f64): f64 {
  const p = a * b, ta = a * 134217729.0, tb = b * 134217729.0; // 2^27 + 1 splits 53 bits into halves
  const ah = ta - (ta - a), bh = tb - (tb - b), al = a - ah, bl = b - bh;
  lo = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
  return p;
}
function twiceAdd(ah: f64, al: f64, bh: f64, bl: f64): f64 { const s = sum(ah, bh), rest = lo; return sum(s, rest + (al + bl)); }
function twiceMul(ah: f64, al: f64, bh: f64, bl: f64): f64 { const p = product(ah, bh), rest = lo; return sum(p, rest + (ah * bl + al * bh)); }
@inline function nearest_(x: f64): f64 { return (x + 6755399441055744.0) - 6755399441055744.0; }
@inline function power(k: i32): f64 { return reinterpret<f64>(<u64>(1023 + k) << 52); }
function scale(x: f64, k: i32): f64 { const half = k / 2; return x * power(half) * power(k - half); }

// ---- angles

const TWO_OVER_PI: StaticArray<u32> = [
  0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0,
  0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4,
  0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
  0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab
];
const limb = new StaticArray<u32>(10), part = new StaticArray<u32>(5);

function quarterFar(x: f64): u32 {
  const bits = reinterpret<u64>(abs(x)), mantissa = (bits & 0xfffffffffffff) | 0x10000000000000;
  const exponent = <i32>(bits >> 52) - 1075;
  const skip = exponent > 2 ? (exponent - 2) / 32 : 0; // words of which every bit is a multiple of four turns
  limb.fill(0); // mantissa * words, lowest first
  for (let half = 0; half < 2; half++) {
    const m: u64 = half ? mantissa >> 32 : mantissa & 0xffffffff;
    let carry: u64 = 0;
    for (let i = 0; i < 7; i++) {
      carry += m * <u64>TWO_OVER_PI[skip + 6 - i] + <u64>limb[i + half];
      limb[i + half] = <u32>carry;
      carry >>= 32;
    }
    limb[7 + half] = <u32>carry;
  }
  const point = 32 * (skip + 7) - exponent, shift = <u64>(point % 32);
  for (let i = 0; i < 5; i++) {
    const at = point / 32 - i;
    let two: u64 = at < 10 ? <u64>limb[at] : 0;
    if (at + 1 < 10) two |= <u64>limb[at + 1] << 32;
    part[i] = <u32>(two >> shift);
  }
  const flip: u32 = 0 - (part[1] >> 31); // beyond the half: the next quarter, and back
  const high = <u64>(part[1] ^ flip) << 32 | <u64>(part[2] ^ flip), low = <u64>(part[3] ^ flip) << 32 | <u64>(part[4] ^ flip);
  const first = <f64>(high >> 11) * 1.1102230246251565e-16, rest = <f64>((high & 0x7ff) << 53 | low >> 11) * 6.018531076210112e-36;
  const sign: f64 = (x < 0) != (flip != 0) ? -1.0 : 1.0;
  hi = twiceMul(sign * first, sign * rest, HALF_PI, HALF_PI_LO);
  const quarter = part[0] - flip; // flip is -1
  return (x < 0 ? 0 - quarter : quarter) & 3;
}
// quarter takes the multiple of pi/2 nearest to a finite x away, leaves hi + lo, and returns which of four it was.
function quarter(x: f64): u32 {
  hi = x; lo = 0;
  if (abs(x) <= 0.785398163397448279) return 0;
  if (abs(x) < 1048576.0) { // pi/2 in three parts, of which k times the first two is exact
    const k = nearest_(x * 0.6366197723675814), a = x - k * 1.5707963267341256;
    const d = sum(a, -(k * 6.077100506303966e-11)), rest = lo;
    hi = sum(d, rest - k * 2.0222662487959506e-21);
    if (abs(hi) > 9.313225746154785e-10) return <u32><i32>k & 3;
  }
  return quarterFar(x);
}
function sinNear(x: f64, rest: f64): f64 {
  const z = x * x;
  const series = -1.0 / 6.0 + z * (1.0 / 120.0 + z * (-1.0 / 5040.0 + z * (1.0 / 362880.0 + z * (-1.0 / 39916800.0 +
    z * (1.0 / 6227020800.0 + z * (-1.0 / 1307674368000.0 + z * (1.0 / 355687428096000.0)))))));
  lo = x * z * series + rest * (1.0 - 0.5 * z);
  return x;
}
function cosNear(x: f64, rest: f64): f64 {
  const z = x * x, half = 0.5 * z, first = 1.0 - half;
  const series = 1.0 / 24.0 + z * (-1.0 / 720.0 + z * (1.0 / 40320.0 + z * (-1.0 / 3628800.0 + z * (1.0 / 479001600.0 +
    z * (-1.0 / 87178291200.0 + z * (1.0 / 20922789888000.0 + z * (-1.0 / 6402373705728000.0)))))));
  lo = ((1.0 - first) - half) + (z * z * series - x * rest);
  return first;
}
function turned(x: f64, turns: u32): f64 {
  if (!(abs(x) < INFINITE)) return NONE;
  turns += quarter(x);
  const first = turns & 1 ? cosNear(hi, lo) : sinNear(hi, lo);
  return turns & 2 ? -(first + lo) : first + lo;
}

export function sin(x: f64): f64 { return abs(x) < TINY ? x : turned(x, 0); }
export function cos(x: f64): f64 { return turned(x, 1); }
export function tan(x: f64): f64 {
  if (abs(x) < TINY) return x;
  if (!(abs(x) < INFINITE)) return NONE;
  const odd = quarter(x) & 1, rest = lo;
  let s = sinNear(hi, rest);
  s = sum(s, lo);
  let sl = lo, c = cosNear(hi, rest);
  c = sum(c, lo);
  let cl = lo;
  if (odd) { const t = s, tl = sl; s = -c; sl = -cl; c = t; cl = tl; }
  const q = s / c, back = product(q, c);
  return q + ((s - back) - lo + (sl - q * cl)) / c;
}

const SIXTEENTHS: StaticArray<f64> = [
  0, 0, 0, 0,
  0.12435499454676144, -3.1253241424539383e-18, 0.18534794999569476, 4.180692268843079e-18,
  0.24497866312686414, 1.0698755618734451e-17, 0.3028848683749714, -1.1010827903001369e-17,
  0.35877067027057225, -2.4623815582638635e-17, 0.4124104415973873, -1.587652227770689e-17,
  0.4636476090008061, 2.2698777452961687e-17, 0.5123894603107377, -2.5462781472855804e-17,
  0.5585993153435624, -5.4556305485916264e-18, 0.6022873461349642, 2.950430737228402e-17,
  0.6435011087932844, 1.5834785051444286e-17, 0.6823165548747481, 6.943223671560008e-18,
  0.7188299996216245, -2.1478388444456983e-17, 0.7531512809621944, -2.4256934659182068e-17,
  0.7853981633974483, 3.061616997868383e-17
];
// atan2 returns the angle of the point (x, y), from -pi to pi.
export function atan2(y: f64, x: f64): f64 {
  const ax = abs(x), ay = abs(y);
  let n = ay < ax ? ay : ax, d = ay < ax ? ax : ay;
  if (!(ax >= 0) || !(ay >= 0)) return NONE;
  if (d == INFINITE) { n = <f64>(n == d); d = 1; }
  if (d == 0) d = 1; // both are zero
  if (d > 8.452712498170644e+270 || d < 1.1830521861667747e-271) {
    const by = d > 1 ? 6.223015277861142e-61 : 1.6069380442589903e+60;
    n *= by; d *= by;
  }
  let i = <i32>(16.0 * n / d + 0.5), t = n / d;
  const c = 0.0625 * <f64>i;
  if (i < 2) i = 0;
  else {
    const top = reinterpret<f64>(reinterpret<u64>(d) & ~<u64>0x7ffffff); // c times this is exact
    t = ((n - c * top) - c * (d - top)) / (d + c * n);
  }
  const z = t * t;
  const tail = t * z * (-1.0 / 3.0 + z * (1.0 / 5.0 + z * (-1.0 / 7.0 + z * (1.0 / 9.0 + z * (-1.0 / 11.0 + z * (1.0 / 13.0 +
    z * (-1.0 / 15.0 + z * (1.0 / 17.0))))))));
  let angle = sum(SIXTEENTHS[2 * i], t), rest = lo + (SIXTEENTHS[2 * i + 1] + tail);
  const behind = reinterpret<u64>(x) >> 63 != 0, steep = ay > ax;
  const turns: f64 = steep ? 1.0 : behind ? 2.0 : 0.0, sign: f64 = steep == behind ? 1.0 : -1.0; // from the axis that is nearest
  if (turns > 0) {
    const base = sum(turns * HALF_PI, sign * angle), more = lo;
    angle = base;
    rest = more + (turns * HALF_PI_LO + sign * rest);
  }
  return copysign<f64>(angle + rest, y);
}
export function atan(x: f64): f64 { return atan2(x, 1); }
export function asin(x: f64): f64 { return atan2(x, sqrt((1.0 - x) * (1.0 + x))); }
export function acos(x: f64): f64 { return atan2(sqrt((1.0 - x) * (1.0 + x)), x); }

// ---- exponentials

const LN2_HI = 0.6931471805598903, LN2_LO = 5.497923018708371e-14; // 42 bits: times an exponent it is exact
let exponentOf: i32 = 0; // of expParts and lnParts

// expParts returns q with e^(first+rest) = 2^exponentOf * (1 + q).
function expParts(first: f64, rest: f64): f64 {
  const n = nearest_(first * 1.4426950408889634);
  const x = sum(first - n * LN2_HI, rest - n * LN2_LO), z = x * x;
  const series = 0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0 + x * (1.0 / 720.0 + x * (1.0 / 5040.0 +
    x * (1.0 / 40320.0 + x * (1.0 / 362880.0 + x * (1.0 / 3628800.0 + x * (1.0 / 39916800.0 +
    x * (1.0 / 479001600.0 + x * (1.0 / 6227020800.0)))))))))));
  exponentOf = <i32>n;
  return x + (z * series + lo);
}
function expTwice(first: f64, rest: f64): f64 {
  if (first > 710) return INFINITE;
  if (first < -746) return 0;
  const q = expParts(first, rest);
  return scale(1.0 + q, exponentOf);
}
export function exp(x: f64): f64 { return x == x ? expTwice(x, 0) : NONE; }
export function tanh(x: f64): f64 {
  const a = abs(x);
  if (x != x) return NONE;
  if (a < TINY) return x;
  if (a > 20) return copysign<f64>(1.0, x);
  const q = expParts(2.0 * a, 0), two = scale(1, exponentOf), less = two * q + (two - 1.0); // e^2a - 1
  return copysign<f64>(a < 0.5 ? less / (less + 2.0) : 1.0 - 2.0 / (less + 2.0), x);
}
// lnParts returns f with x = 2^exponentOf * (1 + f) and 1 + f near 1, for a finite x above zero.
function lnParts(x: f64): f64 {
  const lift = x < 2.2250738585072014e-308 ? 54 : 0;
  const bits = reinterpret<u64>(lift ? x * 18014398509481984.0 : x), mantissa = bits & 0xfffffffffffff;
  const over = <i32>(mantissa > 0x6a09e667f3bcd); // above the root of two
  exponentOf = <i32>(bits >> 52) - 1023 - lift + over;
  return reinterpret<f64>(mantissa | <u64>(1023 - over) << 52) - 1.0;
}
export function ln(x: f64): f64 {
  if (!(x >= 0)) return NONE;
  if (x == 0) return -INFINITE;
  if (x == INFINITE) return x;
  const f = lnParts(x), k = <f64>exponentOf, s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
  const series = z * (2.0 / 3.0 + z * (2.0 / 5.0 + z * (2.0 / 7.0 + z * (2.0 / 9.0 + z * (2.0 / 11.0 + z * (2.0 / 13.0 +
    z * (2.0 / 15.0 + z * (2.0 / 17.0 + z * (2.0 / 19.0 + z * (2.0 / 21.0))))))))));
  return k * LN2_HI + (f - (half - (s * (half + series) + k * LN2_LO)));
}
// lnTwice is the logarithm to some 100 bits, for pow.
function lnTwice(x: f64): f64 {
  const f = lnParts(x), k = <f64>exponentOf;
  const below = sum(2, f), belowLo = lo;
  const q = f / below, back = product(q, below), backLo = lo;
  const s = sum(q, ((f - back) - backLo - q * belowLo) / below), sl = lo;
  const z = twiceMul(s, sl, s, sl), zl = lo, t = z;
  const tail = 1.0 / 7.0 + t * (1.0 / 9.0 + t * (1.0 / 11.0 + t * (1.0 / 13.0 + t * (1.0 / 15.0 + t * (1.0 / 17.0 +
    t * (1.0 / 19.0 + t * (1.0 / 21.0 + t * (1.0 / 23.0))))))));
  let series = twiceMul(z, zl, tail, 0);
  series = twiceAdd(0.2, -1.1102230246251566e-17, series, lo);
  series = twiceMul(z, zl, series, lo);
  series = twiceAdd(0.3333333333333333, 1.850371707708594e-17, series, lo);
  const seriesLo = lo, cube = twiceMul(s, sl, z, zl), rest = twiceMul(cube, lo, series, seriesLo), restLo = lo;
  const log = twiceAdd(2.0 * s, 2.0 * sl, 2.0 * rest, 2.0 * restLo), logLo = lo, whole = sum(k * LN2_HI, k * LN2_LO), wholeLo = lo;
  return twiceAdd(whole, wholeLo, log, logLo);
}
// pow returns x to the power of y, with the special cases of C.
export function pow(x: f64, y: f64): f64 {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return NONE;
  const a = abs(x), ay = abs(y);
  const negative = reinterpret<u64>(x) >> 63 != 0, whole = ay >= 9007199254740992.0 || trunc(y) == y;
  const sign: f64 = negative && ay < 9007199254740992.0 && whole && <i64>y & 1 ? -1.0 : 1.0;
  if (a == 1 && (whole || ay == INFINITE)) return sign;
  if (a == 0 || a == INFINITE || ay == INFINITE) return (a > 1) == (y > 0) ? sign * INFINITE : sign * 0.0;
  if (negative && !whole) return NONE;
  const log = lnTwice(a), rest = lo, t = y * log;
  if (!(abs(t) < 800)) return t > 0 ? sign * INFINITE : sign * 0.0;
  const p = product(y, log), more = lo;
  return sign * expTwice(p, more + y * rest);
}
