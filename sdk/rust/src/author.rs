//! What an environment's author uses.

use crate::abi;
use core::mem::size_of;

/// The element type of an action or an observation. A struct that has several observations or actions is one too, see
/// `Spec::observe` and `Spec::act`.
pub trait Element: Copy + Default + 'static {
    /// abi::U8 and so on, 0 for a struct.
    const DTYPE: u8 = 0;
    /// The value as a choice of a discrete action; None for types that are no choices.
    fn choice(self) -> Option<u32> {
        None
    }
}

macro_rules! element {
    ($($t:ty: $dtype:ident),*) => {$(
        impl Element for $t {
            const DTYPE: u8 = abi::$dtype;
        }
    )*};
}

element!(u8: U8, i8: I8, i16: I16, i64: I64, f32: F32);

impl Element for i32 {
    const DTYPE: u8 = abi::I32;
    fn choice(self) -> Option<u32> {
        Some(self as u32)
    }
}

/// One environment. Slices are valid during the call only. Of several agents, see `Spec::agents`, they have the row of each, one
/// behind the other.
pub trait Env: Sized {
    /// i32 for discrete choices, f32 for a box; for several actions a struct, see `Spec::act`.
    type Action: Element;
    type Obs: Element;
    /// How many elements an observation has, where that does not depend on arguments: small environments step faster then. 0 = only
    /// the space in `spec` says it.
    const OBS_ELEMS: usize = 0;
    /// Whether there is an action mask, which `mask` writes.
    const MASKED: bool = false;
    /// Whether the environment has a discount of its own, which takes the place of the learner's gamma.
    const DISCOUNTED: bool = false;
    /// Whether agents do not always act, as `active` says.
    const TURNS: bool = false;

    /// Describes the environment for these arguments.
    fn spec(config: &mut Config) -> Spec;
    /// Makes one environment, or says what is wrong with the arguments.
    fn new(config: &mut Config) -> Result<Self, String>;
    /// Takes the reset parameters of the episode that `reset` is about to start, in the order of `Spec::params`. Each is NaN where nobody
    /// sets it, see `param_or`.
    fn set_params(&mut self, _params: &[f32]) {}
    /// Starts an episode and writes its first observation.
    fn reset(&mut self, rng: &mut Rng, obs: &mut [Self::Obs]);
    /// Advances by one step and writes all of the next observation, also after the last step.
    fn step(&mut self, rng: &mut Rng, action: &[Self::Action], obs: &mut [Self::Obs]) -> Step;

    /// Says what the last step was to each agent: results has one element for each, which begins as what `step` has returned. Their
    /// flags count with `Spec::apart`; else those of `step` do.
    fn reward(&self, _results: &mut [Step]) {}
    /// Says which agents act in the next step, if TURNS: acts has one element for each, which begins as 1; 0 = it does not. The
    /// action of such an agent is not read, and what it gets meanwhile counts with its last one.
    fn active(&self, _acts: &mut [u8]) {}
    /// Writes 1 for each legal action and 0 for the others; of several actions, the values of the first discrete one first. It is not
    /// called behind the end of an episode, and what it says of an agent that does not act is not read.
    fn mask(&self, _legal: &mut [u8]) {}
    /// What the discount of the last step is, 0 to 1, if DISCOUNTED.
    fn discount(&self) -> f32 {
        0.0
    }
    /// Writes the numbers of the episode that has begun, those of `Spec::reset_infos` in their order, after each `reset`. All are 0 before.
    fn tell_reset(&self, _infos: &mut [f32]) {}
    /// Writes the figures of the last step, those of `Spec::figures` in their order. All are 0 before.
    fn tell(&self, _figures: &mut [f32]) {}
    /// Appends the state without its random stream; false if it cannot be saved.
    fn save(&self, _to: &mut Vec<u8>) -> bool {
        false
    }
    /// Takes a saved state; false if it is not one.
    fn load(&mut self, _from: &[u8]) -> bool {
        false
    }
    /// Shows the environment as text; see `Spec::text`.
    fn render(&self) -> Option<String> {
        None
    }
    /// Draws the environment, and changes no state; see `Spec::picture`.
    fn draw(&self, _picture: &mut Picture) {}
}

/// Reset parameter k out of what `Env::set_params` takes, or fallback where nobody sets it.
pub fn param_or(params: &[f32], k: usize, fallback: f32) -> f32 {
    if params[k].is_nan() {
        return fallback;
    }
    params[k]
}

/// What a step says besides its observation. If both flags are set, terminated wins. Of several agents it is that of each, unless
/// `Env::reward` says otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    pub reward: f32,
    pub terminated: bool,
    pub truncated: bool,
}

/// The elements of an action or an observation; their type is the one of the trait.
#[derive(Clone, Debug, Default)]
pub struct Space {
    pub shape: Vec<u32>,
    pub low: f32,
    /// Equal to low: unbounded.
    pub high: f32,
    /// Values of a discrete space, or of each of its elements; 0 for a box.
    pub n: u32,
    /// First value of a discrete space.
    pub start: i32,
    /// Values of each element, where they differ; n is 0 then.
    pub counts: Vec<u32>,
    /// Bounds of each element, where they differ.
    pub lows: Vec<f32>,
    pub highs: Vec<f32>,
    /// abi::TENSOR_…
    pub flags: u32,
    /// What the host multiplies an element by where it enters a network; 0 = 1.
    pub scale: f32,
    /// Path of the tensor, such as inventory/0; empty for the only one.
    pub name: String,
}

impl Space {
    /// A choice from 0 to n-1.
    pub fn discrete(n: u32) -> Space {
        Space { n, ..Space::default() }
    }

    /// Several choices, with so many values each.
    pub fn multi_discrete(counts: &[u32]) -> Space {
        Space { shape: vec![counts.len() as u32], counts: counts.to_vec(), ..Space::default() }
    }

    /// n elements of 0 or 1.
    pub fn multi_binary(n: u32) -> Space {
        Space { shape: vec![n], n: 2, flags: abi::TENSOR_BINARY, ..Space::default() }
    }

    /// The same space with another first value, if it is discrete.
    pub fn from(self, start: i32) -> Space {
        Space { start, ..self }
    }

    /// A tensor of numbers from low to high; equal bounds mean unbounded.
    pub fn boxed(low: f32, high: f32, shape: &[u32]) -> Space {
        Space { shape: shape.to_vec(), low, high, ..Space::default() }
    }

    /// A picture of u8.
    pub fn image(height: u32, width: u32, channels: u32) -> Space {
        let shape = vec![height, width, channels];
        Space { shape, high: 255.0, scale: 1.0 / 255.0, flags: abi::TENSOR_IMAGE_HWC, ..Space::default() }
    }

    /// How many values element i of a discrete space has.
    pub(crate) fn count(&self, i: usize) -> u32 {
        self.counts.get(i).copied().unwrap_or(self.n)
    }

    pub(crate) fn is_discrete(&self) -> bool {
        self.n > 0 || !self.counts.is_empty()
    }

    /// How many values all elements have together: the length of an action mask.
    pub(crate) fn choices(&self) -> u32 {
        (0..self.elems().unwrap_or(0)).map(|i| self.count(i)).sum()
    }

    /// Number of elements, 1 for a scalar; None for an impossible shape.
    pub(crate) fn elems(&self) -> Option<usize> {
        if self.shape.len() > abi::MAX_RANK {
            return None;
        }
        let mut n = 1usize;
        for &dim in &self.shape {
            n = n.checked_mul(dim as usize).filter(|&n| n > 0 && n <= 1 << 26)?;
        }
        Some(n)
    }
}

/// A number that an environment tells of itself in each step, such as a score. A host that gathers none leaves them alone.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// Its path.
    pub name: String,
    /// How those of an episode become one: abi::TENSOR_SUM, TENSOR_MEAN, TENSOR_MAX or TENSOR_MIN, 0 for the last one. With
    /// abi::TENSOR_EPISODE only that of the step that ends an episode counts.
    pub gather: u32,
}

/// One of several observations or actions: a field of the struct that is `Env::Obs` or `Env::Action`.
#[derive(Clone, Debug)]
pub struct Field {
    pub space: Space,
    pub(crate) dtype: u8,
    pub(crate) size: usize,
    pub(crate) offset: usize,
}

/// An argument, for the host to check and for people to read.
#[derive(Clone, Debug, Default)]
pub struct Arg {
    pub name: String,
    /// What it is for.
    pub doc: String,
    /// abi::ARG_INTEGER, ARG_NUMBER, ARG_BOOL, ARG_TEXT or ARG_CHOICE.
    pub kind: u32,
    /// Its default, as in the pipeline.
    pub value: String,
    /// Bounds of a number; both 0: none.
    pub min: f64,
    pub max: f64,
    /// Of ARG_CHOICE.
    pub choices: Vec<String>,
    /// abi::ARG_AFFECTS_SPACES if tensors depend on it.
    pub flags: u32,
}

impl Arg {
    /// An argument of a kind, with its default as in the pipeline.
    pub fn new(name: &str, kind: u32, value: &str, doc: &str) -> Arg {
        Arg { name: name.to_string(), doc: doc.to_string(), kind, value: value.to_string(), ..Arg::default() }
    }

    /// The same within bounds.
    pub fn within(self, min: f64, max: f64) -> Arg {
        Arg { min, max, ..self }
    }
}

/// What an environment draws on: height rows of width pixels of three bytes, black at first. Places are in pixels from the upper left corner,
/// with fractions; colours are 0xRRGGBB. What lies outside is cut off.
pub struct Picture<'a> {
    pub rgb: &'a mut [u8],
    pub width: u32,
    pub height: u32,
}

impl Picture<'_> {
    /// Fills a rectangle.
    pub fn rect(&mut self, x: f32, y: f32, width: f32, height: f32, colour: u32) {
        for row in pixel(y, self.height)..pixel(y + height, self.height) {
            self.span(row, x, x + width, colour);
        }
    }

    /// Fills a disc around (x, y).
    pub fn disc(&mut self, x: f32, y: f32, radius: f32, colour: u32) {
        for row in pixel(y - radius, self.height)..pixel(y + radius, self.height) {
            let off = row as f32 + 0.5 - y;
            let square = radius * radius - off * off;
            if square > 0.0 {
                self.span(row, x - square.sqrt(), x + square.sqrt(), colour);
            }
        }
    }

    /// Fills the pixels of a row from left to right.
    fn span(&mut self, row: u32, left: f32, right: f32, colour: u32) {
        let [_, red, green, blue] = colour.to_be_bytes();
        for at in pixel(left, self.width)..pixel(right, self.width) {
            let i = 3 * (row * self.width + at) as usize;
            self.rgb[i..i + 3].copy_from_slice(&[red, green, blue]);
        }
    }
}

/// The pixel nearest to a place on one axis, from 0 to most.
fn pixel(at: f32, most: u32) -> u32 {
    ((at + 0.5) as u32).min(most)
}

/// Describes an environment.
#[derive(Clone, Debug)]
pub struct Spec {
    /// name@version.
    pub name: String,
    pub action: Space,
    pub obs: Space,
    /// Several observations in the place of obs.
    pub observations: Vec<Field>,
    /// Several actions in the place of action.
    pub actions: Vec<Field>,
    pub figures: Vec<Figure>,
    /// See `Spec::arg`.
    pub args: Vec<Arg>,
    /// See `Spec::params`.
    pub params: Option<Space>,
    /// See `Spec::agents`, 0 = 1.
    pub agents: u32,
    /// See `Spec::apart`.
    pub apart: bool,
    /// See `Spec::respawn`.
    pub respawn: bool,
    /// A name for each of several agents, or none.
    pub agent_names: Vec<String>,
    /// Names of numbers of an episode that begins, see `Env::tell_reset`.
    pub reset_infos: Vec<String>,
    /// Seconds of simulated time in a step, 0 = not said.
    pub dt: f32,
    /// Steps after which the environment itself truncates, 0 = none.
    pub episode_limit: u32,
    /// Most environments in one batch, 0 = no limit.
    pub max_envs: u32,
    /// Of what save writes: raise it when that changes.
    pub state_version: u32,
    /// See `Spec::text`.
    pub text: bool,
    /// See `Spec::picture`: width, height and pictures a second; no width: none.
    pub picture: (u32, u32, f32),
    /// See `Spec::keys`.
    pub keys: String,
}

impl Spec {
    pub fn new(name: &str, action: Space, obs: Space) -> Spec {
        let name = name.to_string();
        let (observations, actions, figures) = (Vec::new(), Vec::new(), Vec::new());
        let (agents, apart, respawn) = (1, false, false);
        Spec {
            name,
            action,
            obs,
            observations,
            actions,
            figures,
            args: Vec::new(),
            params: None,
            agents,
            apart,
            respawn,
            agent_names: Vec::new(),
            reset_infos: Vec::new(),
            dt: 0.0,
            episode_limit: 0,
            max_envs: 0,
            state_version: 0,
            text: false,
            picture: (0, 0, 0.0),
            keys: String::new(),
        }
    }

    /// An environment with several observations, which `observe` adds. One with several actions as well gives `Space::default()`.
    pub fn several(name: &str, action: Space) -> Spec {
        Spec::new(name, action, Space::default())
    }

    /// Adds an observation of elements of type T by its path, such as inventory/gold. It is the field at that offset of
    /// the struct that is `Env::Obs`, of which each row has one:
    ///
    /// ```
    /// use rlhost_env::{Element, Space, Spec};
    /// use std::mem::offset_of;
    ///
    /// #[derive(Clone, Copy, Default)]
    /// struct Seen { map: [u8; 9], gold: i32 }
    ///
    /// impl Element for Seen {}
    ///
    /// Spec::several("walk@1", Space::discrete(2))
    ///     .observe::<u8>(offset_of!(Seen, map), "map", Space::boxed(0.0, 3.0, &[3, 3]))
    ///     .observe::<i32>(offset_of!(Seen, gold), "inventory/gold", Space::discrete(100));
    /// ```
    pub fn observe<T: Element>(mut self, offset: usize, name: &str, space: Space) -> Spec {
        let space = Space { name: name.to_string(), ..space };
        self.observations.push(Field { space, dtype: T::DTYPE, size: size_of::<T>(), offset });
        self
    }

    /// Adds an action by its path, such as arm/left: i32 where its space is discrete, else f32. It is the field at that offset of
    /// the struct that is `Env::Action`; the space that `new` or `several` is given counts no more:
    ///
    /// ```
    /// use rlhost_env::{Element, Space, Spec};
    /// use std::mem::offset_of;
    ///
    /// #[derive(Clone, Copy, Default)]
    /// struct Move { gear: i32, lamps: [i32; 4], wheel: f32 }
    ///
    /// impl Element for Move {}
    ///
    /// Spec::new("walk@1", Space::default(), Space::boxed(0.0, 1.0, &[1]))
    ///     .act::<i32>(offset_of!(Move, gear), "gear", Space::discrete(3).from(-1))
    ///     .act::<i32>(offset_of!(Move, lamps), "lamps", Space::multi_binary(4))
    ///     .act::<f32>(offset_of!(Move, wheel), "wheel", Space::boxed(-1.0, 1.0, &[1]));
    /// ```
    pub fn act<T: Element>(mut self, offset: usize, name: &str, space: Space) -> Spec {
        let space = Space { name: name.to_string(), ..space };
        self.actions.push(Field { space, dtype: T::DTYPE, size: size_of::<T>(), offset });
        self
    }

    /// Adds a figure; see `Figure::gather`.
    pub fn figure(mut self, name: &str, gather: u32) -> Spec {
        self.figures.push(Figure { name: name.to_string(), gather });
        self
    }

    /// Describes an argument. Where there is one the host refuses others, and values that they do not take.
    pub fn arg(mut self, arg: Arg) -> Spec {
        self.args.push(arg);
        self
    }

    /// What a component such as a curriculum may set for each episode, a box of numbers that `Env::set_params` is told.
    pub fn params(mut self, space: Space) -> Spec {
        self.params = Some(space);
        self
    }

    /// Several agents with the same spaces, of which each has rows of its own. Figures are the environment's; there is no discount.
    pub fn agents(mut self, agents: u32) -> Spec {
        self.agents = agents;
        self
    }

    /// Each agent's episode ends by the flags of its own result, see `Env::reward`. It acts no more then, until the environment
    /// begins anew, which it does when all have ended.
    pub fn apart(mut self) -> Spec {
        self.apart = true;
        self
    }

    /// Each agent's episode ends by the flags of its own result, see `Env::reward`, and the next begins at once. `Env::step` puts the
    /// agent back into the world and writes the first observation of its new life; the last one of the old it gives to `last` before.
    /// Where it sets the flags of all agents and gives nothing to `last`, the environment's own episode is over, and `reset` is called.
    pub fn respawn(mut self) -> Spec {
        self.respawn = true;
        self
    }

    /// Gives each of several agents a name.
    pub fn agent_names(mut self, names: &[&str]) -> Spec {
        self.agent_names = names.iter().map(|name| name.to_string()).collect();
        self
    }

    /// Adds a number of an episode that begins, which `Env::tell_reset` writes.
    pub fn reset_info(mut self, name: &str) -> Spec {
        self.reset_infos.push(name.to_string());
        self
    }

    /// Says that `Env::render` shows the environment as text.
    pub fn text(mut self) -> Spec {
        self.text = true;
        self
    }

    /// Says that `Env::draw` draws pictures of that size, in pixels, so many a second at normal speed; 0 = not said.
    pub fn picture(mut self, width: u32, height: u32, fps: f32) -> Spec {
        self.picture = (width, height, fps);
        self
    }

    /// Says what the keys of a person who plays do, one a line: `"left=0\nright=1\nnone=1"`.
    pub fn keys(mut self, keys: &str) -> Spec {
        self.keys = keys.to_string();
        self
    }

    /// Says how many seconds of simulated time a step takes.
    pub fn dt(mut self, seconds: f32) -> Spec {
        self.dt = seconds;
        self
    }

    pub fn episode_limit(mut self, steps: u32) -> Spec {
        self.episode_limit = steps;
        self
    }
}

/// The random stream of one environment (splitmix64). The C and Go SDKs have the same stream.
#[derive(Clone, Copy, Debug)]
pub struct Rng {
    pub(crate) state: u64,
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Rng {
    /// Starts a stream. Neighbouring seeds give unrelated streams.
    pub fn new(seed: u64) -> Rng {
        Rng { state: mix(seed.wrapping_add(GOLDEN)) }
    }

    /// 64 random bits.
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A number from low to high; high itself only by rounding.
    #[inline]
    pub fn uniform(&mut self, low: f32, high: f32) -> f32 {
        let unit = (self.next() >> 40) as i32 as f32 * (1.0 / 16_777_216.0);
        low + (high - low) * unit
    }

    /// A whole number from 0 to n-1, or 0 if n is 0.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        ((self.next() >> 32).wrapping_mul(n as u64) >> 32) as u32
    }
}

/// What the pipeline gives an environment as arguments. A value of the wrong type, and an argument that nobody
/// asked for, make rl_create fail with a text that names it.
#[derive(Clone, Debug, Default)]
pub struct Config {
    values: Vec<(String, String, bool)>,
    error: Option<String>,
}

impl Config {
    /// Reads lines "key=value".
    pub fn parse(text: &str) -> Config {
        let values = text
            .split('\n')
            .filter(|line| !line.is_empty())
            .map(|line| {
                let (key, value) = line.split_once('=').unwrap_or((line, ""));
                (key.to_string(), value.to_string(), false)
            })
            .collect();
        Config { values, error: None }
    }

    /// Reads the members of a JSON object that the host has checked.
    pub fn json(text: &str) -> Config {
        let values = crate::json::members(text).into_iter().map(|(key, value)| (key, value, false)).collect();
        Config { values, error: None }
    }

    fn lookup(&mut self, key: &str) -> Option<String> {
        let entry = self.values.iter_mut().find(|entry| entry.0 == key)?;
        entry.2 = true;
        Some(entry.1.clone())
    }

    fn argument<T>(&mut self, key: &str, fallback: T, want: &str, parse: impl Fn(&str) -> Option<T>) -> T {
        let Some(text) = self.lookup(key) else { return fallback };
        if let Some(value) = parse(&text) {
            return value;
        }
        if self.error.is_none() {
            self.error = Some(format!("argument {key}: want {want}"));
        }
        fallback
    }

    /// A whole number, or fallback if the pipeline does not give it.
    pub fn int(&mut self, key: &str, fallback: i64) -> i64 {
        self.argument(key, fallback, "a whole number", |s| s.parse().ok())
    }

    /// A number, or fallback.
    pub fn float(&mut self, key: &str, fallback: f64) -> f64 {
        self.argument(key, fallback, "a number", |s| s.parse().ok())
    }

    /// True or false, or fallback.
    pub fn bool(&mut self, key: &str, fallback: bool) -> bool {
        self.argument(key, fallback, "true or false", |s| s.parse().ok())
    }

    /// A string, or fallback.
    pub fn text(&mut self, key: &str, fallback: &str) -> String {
        self.lookup(key).unwrap_or_else(|| fallback.to_string())
    }

    /// A string that has to be given; the error is what `new` returns without it.
    pub fn required(&mut self, key: &str) -> Result<String, String> {
        self.lookup(key).filter(|text| !text.is_empty()).ok_or_else(|| format!("{key}: is missing"))
    }

    /// The first bad value, or else an argument that nothing has asked for.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        match self.values.iter().find(|entry| !entry.2) {
            Some(entry) => Err(format!("unknown argument {}", entry.0)),
            None => Ok(()),
        }
    }

    pub(crate) fn check_values(&self) -> Result<(), String> {
        self.error.clone().map_or(Ok(()), Err)
    }
}
