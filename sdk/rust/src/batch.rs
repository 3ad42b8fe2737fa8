//! A batch of environments and the memory that it is bound to. It does the autoreset.

use crate::abi;
use crate::abi::{Binding, TensorDesc};
use crate::agents::{is_dynamic, per_agent, Agents, Keep, KEEP};
use crate::author::{Arg, Config, Element, Env, Field, Picture, Rng, Space, Spec};
use crate::memory::{self, Part, Rows, Tensor};
use core::mem::{size_of, size_of_val};
use core::sync::atomic::{AtomicU32, Ordering};

/// The environment being stepped, or the first of its group. Atomic, so that it is in memory when a trap ends the call.
static CURRENT: AtomicU32 = AtomicU32::new(0);
/// Which one of the group is being stepped; 0 outside of groups.
static IN_GROUP: AtomicU32 = AtomicU32::new(0);

/// The environment being stepped.
pub fn current() -> u32 {
    CURRENT.load(Ordering::Relaxed) + IN_GROUP.load(Ordering::Relaxed)
}

// Tensors in the order of the description.
const ACTION: usize = 0;
const OBS: usize = 1;
const REWARD: usize = 2;
const TERMINATED: usize = 3;
const TRUNCATED: usize = 4;
const FINAL: usize = 5;
// Of the first action, or what follows: a discount, who acts, figures, the observations after the first, each with its last one, the
// actions after the first, and the masks of those.
const MASK: usize = 6;

// What the SDK adds to the author's bytes: in front a head, the state's version and how many bytes follow it, u32 each;
// behind them flags (u32) and random stream (u64), and, where agents end apart, a byte for each that has.
const HEAD: usize = 8;
const SAVED: usize = 12;
/// What most saved environments fit into.
const ROOM: usize = 256;

/// How many agents an environment may have.
const MAX_AGENTS: u32 = 4096;

// Environments and rows of at most SMALL bytes are stepped in groups, at known offsets: an engine checks the highest address of each
// tensor and not all. Where a step writes more, that counts for little and its code should not be there eight times.
const SMALL: usize = 64;
const GROUP: usize = 8;

/// Whether environments are stepped in groups where their rows are packed.
const fn is_small<E: Env>() -> bool {
    let (state, row) = (size_of::<E>(), E::OBS_ELEMS * size_of::<E::Obs>());
    let one = E::Action::DTYPE != 0 && E::Obs::DTYPE != 0 && !E::DISCOUNTED;
    one && state > 0 && state <= SMALL && row > 0 && row <= SMALL
}

/// The rows that a step of environments of one agent reads and writes.
struct Columns<E: Env> {
    actions: Rows<E::Action>,
    obs: Rows<E::Obs>,
    rewards: Rows<f32>,
    terminated: Rows<u8>,
    truncated: Rows<u8>,
}

impl<E: Env> Columns<E> {
    /// Whether all are packed, with one action each.
    fn are_packed(&self) -> bool {
        let flags = self.terminated.is_packed(1) && self.truncated.is_packed(1);
        flags && self.actions.is_packed(1) && self.obs.is_packed(E::OBS_ELEMS) && self.rewards.is_packed(1)
    }
}

/// Steps the environments from i on, the last one first, so that the first check of an address is the last one. A truncated flag is
/// written next to a terminated one; see end_group.
#[inline(always)]
fn step_group<E: Env>(
    in_group: &AtomicU32,
    i: usize,
    envs: &mut [E; GROUP],
    rngs: &mut [Rng; GROUP],
    columns: &Columns<E>,
) {
    let actions: &[E::Action; GROUP] = columns.actions.group(i);
    let obs = columns.obs.elements(i * E::OBS_ELEMS, GROUP * E::OBS_ELEMS);
    let rewards: &mut [f32; GROUP] = columns.rewards.group(i);
    let terminated: &mut [u8; GROUP] = columns.terminated.group(i);
    let truncated: &mut [u8; GROUP] = columns.truncated.group(i);
    macro_rules! step {
        ($($k:literal)*) => {$(
            in_group.store($k, Ordering::Relaxed);
            let row = &mut obs[$k * E::OBS_ELEMS..($k + 1) * E::OBS_ELEMS];
            let step = envs[$k].step(&mut rngs[$k], &actions[$k..$k + 1], row);
            let mut result = [step];
            envs[$k].reward(&mut result);
            rewards[$k] = result[0].reward;
            terminated[$k] = step.terminated as u8;
            truncated[$k] = step.truncated as u8;
        )*};
    }
    step!(7 6 5 4 3 2 1 0);
}

pub struct Batch<E: Env> {
    envs: Vec<E>,
    in_group: &'static AtomicU32, // IN_GROUP, whose address the compiler would have an engine check in each step
    rngs: Vec<Rng>,
    waiting: Vec<bool>,
    idle: usize,
    mode: u32,
    actions: Vec<Field>, // of a struct, or the one that is none
    state_version: u32,
    picture: (u32, u32), // width and height
    bound: bool,
    action: Tensor<E::Action>,
    obs: Tensor<E::Obs>,
    last: Tensor<E::Obs>,
    reward: Tensor<f32>,
    terminated: Tensor<u8>,
    truncated: Tensor<u8>,
    mask: Tensor<u8>,
    discount: Tensor<f32>,
    active: Tensor<u8>,
    agents: Agents,
    figures: Vec<Tensor<f32>>,
    told: Vec<f32>,           // of one environment
    params: Tensor<f32>,      // the last of the description
    firsts: Vec<Tensor<f32>>, // infos at reset, the last of the description
    first_told: Vec<f32>,     // of one environment
    written: u32,             // the row of the observations that are written
    given: Vec<f32>,          // those of the environment whose episode begins, empty where there are none
    observations: usize,      // of a struct, 0 if there is one that is none
    masks: Vec<usize>,        // of the actions that have one: their numbers
}

fn desc(role: u16, dtype: u8, flags: u32, space: &Space) -> TensorDesc {
    let mut d = TensorDesc {
        role,
        dtype,
        rank: space.shape.len() as u8,
        flags: flags | space.flags,
        low: space.low,
        high: space.high,
        n: space.n,
        start: space.start,
        scale: space.scale,
        ..Default::default()
    };
    if space.low == space.high && !space.is_discrete() && space.lows.is_empty() {
        d.flags |= abi::TENSOR_NO_LOW | abi::TENSOR_NO_HIGH;
    }
    d.shape[..space.shape.len()].copy_from_slice(&space.shape);
    d
}

/// Adds a string to a string table and returns where it lies there.
fn put(strings: &mut Vec<u8>, text: &str) -> u32 {
    if text.is_empty() {
        return 0;
    }
    let at = strings.len() as u32;
    strings.extend_from_slice(text.as_bytes());
    strings.push(0);
    at
}

/// The record of an argument, whose texts it adds to a string table.
fn arg(a: &Arg, strings: &mut Vec<u8>) -> abi::ArgDesc {
    abi::ArgDesc {
        name: put(strings, &a.name),
        doc: put(strings, &a.doc),
        kind: a.kind,
        flags: a.flags,
        min: a.min,
        max: a.max,
        value: put(strings, &a.value),
        choices: put(strings, &a.choices.join("\n")),
        ..Default::default()
    }
}

/// Whether the fields lie in a struct of that size.
fn check_fields(what: &str, fields: &[Field], size: usize) -> Result<(), String> {
    for f in fields {
        let bytes = f.space.elems().map_or(usize::MAX, |n| n * f.size);
        if f.offset % f.size.max(1) != 0 || bytes > size.saturating_sub(f.offset) || f.dtype == 0 {
            let (name, offset) = (&f.space.name, f.offset);
            return Err(format!("{what} {name}: no field of its type and shape lies at offset {offset}"));
        }
    }
    Ok(())
}

/// The spec for a configuration, or what is wrong with it.
fn resolve<E: Env>(config: &mut Config) -> Result<Spec, String> {
    let spec = E::spec(config);
    config.check_values()?;
    check_fields("observation", &spec.observations, size_of::<E::Obs>())?;
    check_fields("action", &spec.actions, size_of::<E::Action>())?;
    if (E::Obs::DTYPE == 0) != !spec.observations.is_empty() {
        return Err("several observations are fields of a struct, see Spec::observe".to_string());
    }
    if (E::Action::DTYPE == 0) != !spec.actions.is_empty() {
        return Err("several actions are fields of a struct, see Spec::act".to_string());
    }
    if E::MASKED && !spec.actions.is_empty() && !spec.actions.iter().any(|a| a.space.is_discrete()) {
        return Err("mask: there is no discrete action".to_string());
    }
    if let Some(a) = spec.actions.iter().find(|a| a.dtype != if a.space.is_discrete() { abi::I32 } else { abi::F32 }) {
        return Err(format!("action {}: want i32 where its space is discrete, else f32", a.space.name));
    }
    if spec.agents > MAX_AGENTS {
        return Err(format!("agents: {} of them, want 0 to {MAX_AGENTS}", spec.agents));
    }
    if !spec.agent_names.is_empty() && (spec.agent_names.len() != spec.agents as usize || spec.agents < 2) {
        let count = spec.agent_names.len();
        return Err(format!("agent names: {count} of them, want one for each of several agents"));
    }
    if spec.respawn && spec.agents < 2 {
        return Err("respawn: it is for several agents, of one the environment's own episode ends".to_string());
    }
    if spec.respawn && spec.apart {
        return Err("apart and respawn exclude each other: an agent whose episode has ended is out, or back at once"
            .to_string());
    }
    if E::DISCOUNTED && per_agent::<E>(&spec) {
        return Err("discount: there is none of agents, leave it to the learner's gamma".to_string());
    }
    if spec.params.as_ref().is_some_and(|space| space.is_discrete()) {
        return Err("params: want a box of numbers".to_string());
    }
    let seen = spec.observations.iter().map(|o| ("observation", &o.space));
    let params = spec.params.iter().map(|space| ("params", space));
    let acts = spec.actions.iter().map(|a| ("action", &a.space));
    let one = [("action", &spec.action), ("observation", &spec.obs)].into_iter();
    for (what, space) in one.chain(seen).chain(acts).chain(params) {
        let elems = space.elems().ok_or_else(|| format!("{what}: impossible shape {:?}", space.shape))?;
        if space.n as usize > (1 << 26) / elems {
            return Err(format!("{what}: impossible number of values {}", space.n));
        }
    }
    let elems = spec.obs.elems().unwrap_or(0);
    if E::OBS_ELEMS > 0 && E::Obs::DTYPE != 0 && E::OBS_ELEMS != elems {
        let known = E::OBS_ELEMS;
        return Err(format!("observation: OBS_ELEMS is {known}, but its space has {elems} elements: make them equal"));
    }
    Ok(spec)
}

/// The actions: those of a struct, or the one that is none.
fn actions<E: Env>(spec: &Spec) -> Vec<Field> {
    if spec.actions.is_empty() {
        return vec![Field { space: spec.action.clone(), dtype: E::Action::DTYPE, size: 0, offset: 0 }];
    }
    spec.actions.clone()
}

/// The numbers of the actions that have a mask: of several those that are discrete.
fn masked<E: Env>(actions: &[Field]) -> Vec<usize> {
    let has = |j: &usize| E::MASKED && (actions.len() == 1 || actions[*j].space.is_discrete());
    (0..actions.len()).filter(has).collect()
}

fn mask_space(action: &Space) -> Space {
    Space { shape: vec![action.choices()], high: 1.0, name: action.name.clone(), ..Space::default() }
}

/// The description of an environment: a Spec, its tensors, their values and the string table.
pub fn describe<E: Env>(config: &str) -> Result<Vec<u8>, String> {
    let spec = resolve::<E>(&mut Config::parse(config))?;
    let several = per_agent::<E>(&spec);
    let (number, flag) = (Space::default(), Space { high: 1.0, ..Space::default() });
    let one = [Field { space: spec.obs.clone(), dtype: E::Obs::DTYPE, size: 0, offset: 0 }];
    let observed = if spec.observations.is_empty() { &one[..] } else { &spec.observations[..] };
    let seen = |i: usize, role: u16, flags: u32| {
        let (space, last) = (&observed[i].space, role == abi::ROLE_FINAL_OBSERVATION);
        let pair = if last { i as u16 } else { 0 };
        (TensorDesc { index: i as u16, pair, ..desc(role, observed[i].dtype, flags, space) }, space)
    };
    let acts = actions::<E>(&spec);
    let act = |j: usize| {
        let (dtype, space) = (acts[j].dtype, &acts[j].space);
        (TensorDesc { index: j as u16, ..desc(abi::ROLE_ACTION, dtype, abi::TENSOR_AT_T, space) }, space)
    };
    let pairs = masked::<E>(&acts);
    let masks: Vec<Space> = pairs.iter().map(|&j| mask_space(&acts[j].space)).collect();
    let mask = |k: usize| {
        let d = desc(abi::ROLE_ACTION_MASK, abi::U8, abi::TENSOR_AT_T1, &masks[k]);
        (TensorDesc { index: k as u16, pair: pairs[k] as u16, ..d }, &masks[k])
    };
    let mut tensors = vec![
        act(0),
        seen(0, abi::ROLE_OBSERVATION, abi::TENSOR_AT_T1),
        (desc(abi::ROLE_REWARD, abi::F32, abi::TENSOR_AT_T, &number), &number),
        (desc(abi::ROLE_TERMINATED, abi::U8, abi::TENSOR_AT_T, &flag), &flag),
        (desc(abi::ROLE_TRUNCATED, abi::U8, abi::TENSOR_AT_T, &flag), &flag),
        seen(0, abi::ROLE_FINAL_OBSERVATION, abi::TENSOR_NO_TIME),
    ];
    let front = (pairs.first() == Some(&0)) as usize; // masks before the rest
    tensors.extend((0..front).map(mask));
    if E::DISCOUNTED {
        tensors.push((desc(abi::ROLE_DISCOUNT, abi::F32, abi::TENSOR_AT_T, &flag), &flag));
    }
    if is_dynamic::<E>(&spec) {
        tensors.push((desc(abi::ROLE_ACTIVE, abi::U8, abi::TENSOR_AT_T1, &flag), &flag));
    }
    let figures: Vec<Space> = spec.figures.iter().map(|f| Space { name: f.name.clone(), ..Space::default() }).collect();
    for (k, space) in figures.iter().enumerate() {
        let flags = abi::TENSOR_AT_T | abi::TENSOR_OPTIONAL | spec.figures[k].gather;
        tensors.push((TensorDesc { index: k as u16, ..desc(abi::ROLE_INFO, abi::F32, flags, space) }, space));
    }
    for i in 1..observed.len() {
        tensors.push(seen(i, abi::ROLE_OBSERVATION, abi::TENSOR_AT_T1));
        tensors.push(seen(i, abi::ROLE_FINAL_OBSERVATION, abi::TENSOR_NO_TIME));
    }
    tensors.extend((1..acts.len()).map(act));
    tensors.extend((front..masks.len()).map(mask));
    if let Some(space) = &spec.params {
        let flags = abi::TENSOR_NO_TIME | abi::TENSOR_OPTIONAL;
        tensors.push((desc(abi::ROLE_RESET_PARAM, abi::F32, flags, space), space));
    }
    let firsts: Vec<Space> =
        spec.reset_infos.iter().map(|name| Space { name: name.clone(), ..Space::default() }).collect();
    for (k, space) in firsts.iter().enumerate() {
        let flags = abi::TENSOR_AT_T1 | abi::TENSOR_OPTIONAL;
        tensors.push((TensorDesc { index: k as u16, ..desc(abi::ROLE_RESET_INFO, abi::F32, flags, space) }, space));
    }
    let own = |role: u16| {
        let flags = role == abi::ROLE_TERMINATED || role == abi::ROLE_TRUNCATED;
        role == abi::ROLE_INFO
            || role == abi::ROLE_RESET_INFO
            || role == abi::ROLE_RESET_PARAM
            || flags && !spec.apart && !spec.respawn
    };
    tensors.iter_mut().filter(|(d, _)| several && !own(d.role)).for_each(|(d, _)| d.flags |= abi::TENSOR_PER_AGENT);
    let groups = (spec.agents > 1) as usize;
    let records = abi::SPEC_BYTES
        + groups * abi::GROUP_BYTES
        + tensors.len() * abi::TENSOR_BYTES
        + spec.args.len() * abi::ARG_BYTES;
    let (mut values, mut strings) = (Vec::new(), vec![0]);
    for (d, space) in tensors.iter_mut() {
        let at = values.len();
        space.counts.iter().for_each(|n| values.extend_from_slice(&n.to_le_bytes()));
        space.lows.iter().chain(&space.highs).for_each(|x| values.extend_from_slice(&x.to_le_bytes()));
        d.values = if values.len() > at { (records + at) as u32 } else { 0 };
        d.path = put(&mut strings, &space.name);
    }
    let args: Vec<abi::ArgDesc> = spec.args.iter().map(|a| arg(a, &mut strings)).collect();
    let (name, version) = spec.name.split_once('@').unwrap_or((&spec.name, ""));
    let (name, version) = (put(&mut strings, name), put(&mut strings, version));
    let keys = put(&mut strings, &spec.keys);
    let team = if groups > 0 { put(&mut strings, "agents") } else { 0 };
    let agent_names = put(&mut strings, &spec.agent_names.join("\n"));
    let group = abi::GroupDesc { name: team, agents: spec.agents, agent_names, ..Default::default() };
    let every = abi::AUTORESET_NEXT_STEP | abi::AUTORESET_SAME_STEP | abi::AUTORESET_DISABLED;
    let head = abi::Spec {
        needs: if several { abi::FEATURE_AGENTS } else { 0 },
        groups: groups as u32,
        flags: if is_dynamic::<E>(&spec) { abi::SPEC_DYNAMIC_AGENTS } else { 0 },
        size: abi::SPEC_BYTES as u32,
        abi_major: abi::ABI_MAJOR,
        abi_minor: abi::ABI_MINOR,
        caps: abi::CAP_STRIDES,
        tensor_bytes: abi::TENSOR_BYTES as u16,
        binding_bytes: abi::BINDING_BYTES as u16,
        group_bytes: abi::GROUP_BYTES as u16,
        arg_bytes: abi::ARG_BYTES as u16,
        tensors: tensors.len() as u32,
        args: args.len() as u32,
        strings_at: (records + values.len()) as u32,
        strings_len: strings.len() as u32,
        max_envs: spec.max_envs,
        episode_limit: spec.episode_limit,
        autoreset: if several { abi::AUTORESET_SAME_STEP } else { every },
        dt: spec.dt,
        reward_threshold: f32::NAN,
        state_version: spec.state_version,
        render_modes: shows(&spec),
        render_width: spec.picture.0,
        render_height: spec.picture.1,
        render_fps: spec.picture.2,
        name,
        version,
        keys,
        ..Default::default()
    };
    let mut out = memory::struct_bytes(&head).to_vec();
    (0..groups).for_each(|_| out.extend_from_slice(memory::struct_bytes(&group)));
    tensors.iter().for_each(|(d, _)| out.extend_from_slice(memory::struct_bytes(d)));
    args.iter().for_each(|d| out.extend_from_slice(memory::struct_bytes(d)));
    out.extend_from_slice(&values);
    out.extend_from_slice(&strings);
    Ok(out)
}

/// The modes of rl_render.
fn shows(spec: &Spec) -> u32 {
    let text = if spec.text { abi::RENDER_TEXT } else { 0 };
    let colours = if spec.picture.0 > 0 { abi::RENDER_RGB } else { 0 };
    text | colours
}

/// Writes the figures of environment i that the host wants.
fn write_figures(figures: &mut [Tensor<f32>], t: u32, i: usize, told: &[f32]) {
    for (figure, value) in figures.iter_mut().zip(told).filter(|(figure, _)| figure.wanted) {
        figure.rows(t).set(i, *value);
    }
}

/// The tensor of all observations.
fn observed<T: Element>(spec: &Spec, agents: usize, envs: usize) -> Tensor<T> {
    let elems = |space: &Space| space.elems().unwrap_or(1);
    if spec.observations.is_empty() {
        return Tensor::new(elems(&spec.obs), agents, envs);
    }
    Tensor::of(fields(&spec.observations), 1, agents, envs)
}

/// Where the fields of a struct lie.
fn fields(list: &[Field]) -> Vec<Part> {
    list.iter().map(|f| Part::new(f.size, f.space.elems().unwrap_or(1), f.offset)).collect()
}

/// The tensor of all masks, in which those of several actions lie one behind the other.
fn legal(actions: &[Field], masks: &[usize], agents: usize, envs: usize) -> Tensor<u8> {
    let sizes: Vec<usize> = masks.iter().map(|&j| actions[j].space.choices() as usize).collect();
    if actions.len() == 1 {
        return Tensor::new(sizes.iter().sum(), agents, envs);
    }
    let mut row = 0;
    let mut parts = Vec::new();
    for n in sizes {
        parts.push(Part::new(1, n, row));
        row += n;
    }
    Tensor::of(parts, row, agents, envs)
}

impl<E: Env> Batch<E> {
    pub fn new(text: &str, n: u32, mode: u32) -> Result<Self, (i32, String)> {
        let mut config = Config::parse(text);
        let bad = |why: String| (abi::STATUS_CONFIG, why);
        let spec = resolve::<E>(&mut config).map_err(bad)?;
        if ![abi::AUTORESET_NEXT_STEP, abi::AUTORESET_SAME_STEP, abi::AUTORESET_DISABLED].contains(&mode) {
            return Err((abi::STATUS_UNSUPPORTED, format!("autoreset mode {mode} does not exist")));
        }
        if per_agent::<E>(&spec) && mode != abi::AUTORESET_SAME_STEP {
            let why = "environments with agents begin anew in the same step only";
            return Err((abi::STATUS_UNSUPPORTED, why.to_string()));
        }
        if n == 0 || (spec.max_envs > 0 && n > spec.max_envs) {
            return Err((abi::STATUS_ARGUMENT, format!("{n} environments are not possible")));
        }
        let mut envs = Vec::new();
        envs.try_reserve_exact(n as usize).map_err(|e| (abi::STATUS_MEMORY, e.to_string()))?;
        for _ in 0..n {
            envs.push(E::new(&mut config).map_err(bad)?);
        }
        config.check().map_err(bad)?;
        let elems = |space: &Space| space.elems().unwrap_or(1);
        let count = n as usize;
        let agents = Agents::new::<E>(&spec, count);
        let each = agents.count;
        let flags = if spec.apart || spec.respawn { each } else { 1 };
        let params = spec.params.as_ref().map_or(0, elems);
        let actions = actions::<E>(&spec);
        let masks = masked::<E>(&actions);
        Ok(Batch {
            envs,
            in_group: &IN_GROUP,
            rngs: (0..n as u64).map(Rng::new).collect(),
            waiting: vec![true; count],
            idle: count,
            mode,
            state_version: spec.state_version,
            picture: (spec.picture.0, spec.picture.1),
            bound: false,
            action: match spec.actions.is_empty() {
                true => Tensor::new(elems(&spec.action), each, count),
                false => Tensor::of(fields(&actions), 1, each, count),
            },
            obs: observed(&spec, each, count),
            last: observed(&spec, each, count),
            observations: spec.observations.len(),
            reward: Tensor::new(1, each, count),
            terminated: Tensor::new(1, flags, count),
            truncated: Tensor::new(1, flags, count),
            mask: legal(&actions, &masks, each, count),
            discount: Tensor::new(1, 1, count),
            active: Tensor::new(1, each, count),
            agents,
            figures: spec.figures.iter().map(|_| Tensor::new(1, 1, count)).collect(),
            told: vec![0.0; spec.figures.len()],
            params: Tensor::new(params, 1, count),
            firsts: spec.reset_infos.iter().map(|_| Tensor::new(1, 1, count)).collect(),
            first_told: vec![0.0; spec.reset_infos.len()],
            written: 0,
            given: vec![0.0; params],
            actions,
            masks,
        })
    }

    pub fn len(&self) -> usize {
        self.envs.len()
    }

    pub fn bind(&mut self, list: &[Binding]) -> i32 {
        let front = (self.masks.first() == Some(&0)) as usize; // masks before the rest
        let discount = MASK + front;
        let active = discount + E::DISCOUNTED as usize;
        let figures = active + self.agents.dynamic as usize;
        let more = figures + self.figures.len();
        let acts = more + 2 * self.observations.saturating_sub(1);
        let masks = acts + self.actions.len() - 1;
        let params = masks + self.masks.len() - front;
        let firsts = params + !self.given.is_empty() as usize;
        if list.len() != firsts + self.firsts.len() {
            return abi::STATUS_ARGUMENT;
        }
        let same_step = self.mode == abi::AUTORESET_SAME_STEP;
        let seen = if self.observations == 0 {
            self.obs.bind(&list[OBS], true) && self.last.bind(&list[FINAL], same_step)
        } else {
            let behind = |first: usize, k: usize| {
                list[first..first + 1].iter().chain(list[more..acts].iter().skip(k).step_by(2))
            };
            self.obs.bind_parts(behind(OBS, 0), true) && self.last.bind_parts(behind(FINAL, 1), same_step)
        };
        let moves = if self.actions.len() == 1 && E::Action::DTYPE != 0 {
            self.action.bind(&list[ACTION], true) && (!E::MASKED || self.mask.bind(&list[MASK], true))
        } else {
            let legal = list[MASK..MASK + front].iter().chain(&list[masks..params]);
            self.action.bind_parts(list[ACTION..ACTION + 1].iter().chain(&list[acts..masks]), true)
                && self.mask.bind_parts(legal, true)
        };
        self.bound = seen
            && moves
            && self.reward.bind(&list[REWARD], true)
            && self.terminated.bind(&list[TERMINATED], true)
            && self.truncated.bind(&list[TRUNCATED], true)
            && (!E::DISCOUNTED || self.discount.bind(&list[discount], true))
            && (!self.agents.dynamic || self.active.bind(&list[active], true))
            && self.figures.iter_mut().zip(&list[figures..]).all(|(figure, binding)| figure.bind(binding, false))
            && list[params..firsts].iter().all(|binding| self.params.bind(binding, false))
            && self.firsts.iter_mut().zip(&list[firsts..]).all(|(info, binding)| info.bind(binding, false));
        if self.bound {
            abi::STATUS_OK
        } else {
            abi::STATUS_ARGUMENT
        }
    }

    fn set_waiting(&mut self, i: usize, waiting: bool) {
        self.idle = self.idle - self.waiting[i] as usize + waiting as usize;
        self.waiting[i] = waiting;
    }

    /// Starts an episode of environment i and writes its first observation into a packed row. Not a call: that costs as much as it does.
    #[inline(always)]
    fn begin(&mut self, i: usize, obs: &mut [E::Obs]) {
        CURRENT.store(i as u32, Ordering::Relaxed);
        self.set_waiting(i, false);
        self.give_params(i);
        self.envs[i].reset(&mut self.rngs[i], obs);
        if !self.firsts.is_empty() {
            self.tell_first(i);
        }
        if self.agents.dynamic {
            let all = self.agents.of(i);
            self.agents.over[all].fill(0);
        }
    }

    /// Writes the infos of the episode that begins in environment i, those that the host wants.
    #[inline(never)]
    fn tell_first(&mut self, i: usize) {
        self.first_told.fill(0.0);
        self.envs[i].tell_reset(&mut self.first_told);
        write_figures(&mut self.firsts, self.written, i, &self.first_told);
    }

    /// Tells environment i the reset parameters of its next episode, NaN where the host has none.
    fn give_params(&mut self, i: usize) {
        if self.given.is_empty() {
            return;
        }
        match self.params.wanted {
            true => self.given.copy_from_slice(self.params.fetch(0, i, i + 1).row(i)),
            false => self.given.fill(f32::NAN),
        }
        self.envs[i].set_params(&self.given);
    }

    /// Finds out which agents of environment i act now.
    fn ask(&mut self, i: usize) {
        let all = self.agents.of(i);
        let acts = &mut self.agents.acts[all.clone()];
        acts.fill(1);
        if E::TURNS {
            self.envs[i].active(acts);
        }
        acts.iter_mut().zip(&self.agents.over[all]).for_each(|(acts, over)| *acts = (*acts != 0 && *over == 0) as u8);
    }

    /// Writes who acts at time t, where agents do not always act.
    fn write_active(&mut self, t: u32, first: usize, end: usize) {
        if self.agents.dynamic {
            self.write_asked(t, first, end);
        }
    }

    #[inline(never)]
    fn write_asked(&mut self, t: u32, first: usize, end: usize) {
        let active = self.active.rows(t);
        for i in first..end {
            self.ask(i);
            active.row(i).copy_from_slice(&self.agents.acts[self.agents.of(i)]);
        }
        self.active.flush(t, first, end);
    }

    /// Writes the masks of time t: the author's, and all ones where the next step reads no action: behind an end, and for agents
    /// that do not act.
    fn write_mask(&mut self, t: u32, first: usize, end: usize) {
        if E::MASKED {
            let mask = self.mask.rows(t);
            for i in first..end {
                match self.waiting[i] {
                    true => mask.row(i).fill(1),
                    false => self.envs[i].mask(mask.row(i)),
                }
                if self.agents.dynamic {
                    let idle = mask.row(i).chunks_mut(self.mask.row).zip(&self.agents.acts[self.agents.of(i)]);
                    idle.filter(|(_, acts)| **acts == 0).for_each(|(legal, _)| legal.fill(1));
                }
            }
            self.mask.flush(t, first, end);
        }
    }

    pub fn reset(&mut self, t: u32, mask: Option<&[u8]>, seeds: Option<&[u8]>) -> i32 {
        if !self.bound {
            return abi::STATUS_STATE;
        }
        let obs = self.obs.rows(t);
        self.written = t;
        for i in 0..self.envs.len() {
            if mask.is_some_and(|mask| mask[i] == 0) {
                continue;
            }
            if let Some(seeds) = seeds {
                let mut seed = [0; 8];
                seed.copy_from_slice(&seeds[8 * i..8 * i + 8]);
                self.rngs[i] = Rng::new(u64::from_le_bytes(seed));
            }
            self.begin(i, obs.row(i));
            self.obs.flush(t, i, i + 1);
            self.write_active(t, i, i + 1);
            self.write_mask(t, i, i + 1);
        }
        abi::STATUS_OK
    }

    /// Checks every discrete action before anything moves, so that a bad one changes no environment.
    fn actions_ok(&self, actions: Rows<E::Action>, first: usize, end: usize) -> bool {
        if E::Action::DTYPE == 0 {
            return self.fields_ok(actions, first, end);
        }
        let space = &self.actions[0].space;
        if !space.is_discrete() {
            return true;
        }
        if self.action.elems == 1 && space.start == 0 && space.n > 0 {
            let mut all = 0;
            match actions.is_packed(1) {
                true => actions.elements(first, end - first).iter().for_each(|a| all |= a.choice().unwrap_or(0)),
                false => (first..end).for_each(|i| all |= actions.get(i).choice().unwrap_or(0)),
            }
            if all < space.n {
                return true; // no action is larger than all of them put together
            }
        }
        let row = self.action.row;
        let legal = |(k, a): (usize, &E::Action)| {
            a.choice().map_or(true, |a| a.wrapping_sub(space.start as u32) < space.count(k % row))
        };
        for i in first..end {
            let acts = &self.agents.acts[self.agents.of(i)];
            if !self.waiting[i] && !actions.row(i).iter().enumerate().all(|(k, a)| acts[k / row] == 0 || legal((k, a)))
            {
                CURRENT.store(i as u32, Ordering::Relaxed);
                return false;
            }
        }
        true
    }

    /// Is actions_ok for the fields of structs.
    #[inline(never)]
    fn fields_ok(&self, actions: Rows<E::Action>, first: usize, end: usize) -> bool {
        let legal = |action: &E::Action| {
            self.actions.iter().filter(|field| field.space.is_discrete()).all(|field| {
                let value = |k| memory::choice(action, field.offset, k).wrapping_sub(field.space.start as u32);
                (0..field.space.elems().unwrap_or(1)).all(|k| value(k) < field.space.count(k))
            })
        };
        for i in (first..end).filter(|i| !self.waiting[*i]) {
            let acts = &self.agents.acts[self.agents.of(i)];
            if !actions.row(i).iter().zip(acts).all(|(action, acts)| *acts == 0 || legal(action)) {
                CURRENT.store(i as u32, Ordering::Relaxed);
                return false;
            }
        }
        true
    }

    pub fn step(&mut self, t: u32, first: usize, count: usize) -> i32 {
        if !self.bound || (self.idle > 0 && self.mode == abi::AUTORESET_SAME_STEP) {
            return abi::STATUS_STATE; // reset first
        }
        let end = first + count;
        self.written = t + 1;
        let actions = self.action.fetch(t, first, end);
        if !self.actions_ok(actions, first, end) {
            return abi::STATUS_ACTION;
        }
        let mut i = first;
        while i < end {
            let mut k = if self.idle == 0 { end } else { i };
            while k < end && !self.waiting[k] {
                k += 1;
            }
            match self.agents.several {
                true => self.run::<true>(t, i, k, actions),
                false => self.run::<false>(t, i, k, actions),
            }
            if k < end {
                self.rest(t, k);
                k += 1;
            }
            i = k;
        }
        self.obs.flush(t + 1, first, end);
        if self.agents.several {
            self.reward.flush(t, first, end);
            self.terminated.flush(t, first, end);
            self.truncated.flush(t, first, end);
        }
        self.write_active(t + 1, first, end);
        self.write_mask(t + 1, first, end);
        abi::STATUS_OK
    }

    /// Steps environments that wait for nothing, then looks for ended episodes. The loop over those of one agent knows of no other.
    #[inline(never)]
    fn run<const SEVERAL: bool>(&mut self, t: u32, first: usize, end: usize, actions: Rows<E::Action>) {
        let (obs, rewards) = (self.obs.rows(t + 1), self.reward.rows(t));
        let (terminated, truncated) = (self.terminated.rows(t), self.truncated.rows(t));
        let (apart, respawn) = (SEVERAL && self.agents.apart, SEVERAL && self.agents.respawn);
        let rest = match SEVERAL {
            true => first,
            false => self.run_groups(first, end, &Columns { actions, obs, rewards, terminated, truncated }),
        };
        let envs = self.envs[rest..end].iter_mut().zip(&mut self.rngs[rest..end]);
        for (i, (env, rng)) in (rest..end).zip(envs) {
            CURRENT.store(i as u32, Ordering::Relaxed);
            if respawn {
                let rows = self.last.rows(0).row(i);
                let all = self.agents.of(i);
                let kept = self.agents.kept[all].as_mut_ptr();
                let (bytes, agents) = (size_of_val(rows), self.agents.count);
                KEEP.set(Some(Keep { rows: rows.as_mut_ptr().cast(), bytes, agents, kept }));
            }
            let step = env.step(rng, actions.row(i), obs.row(i));
            if respawn {
                KEEP.set(None);
            }
            if SEVERAL {
                self.agents.reward(env, step, rewards.row(i), terminated.row(i), truncated.row(i));
            } else {
                let mut result = [step];
                env.reward(&mut result);
                rewards.set(i, result[0].reward);
                terminated.set(i, step.terminated as u8);
                truncated.set(i, (step.truncated && !step.terminated) as u8);
            }
            if E::DISCOUNTED {
                self.discount.rows(t).set(i, env.discount());
            }
        }
        if !self.told.is_empty() {
            self.tell(t, first, end);
        }
        for i in (first..rest).step_by(GROUP) {
            self.end_group(i, obs, terminated.group(i), truncated.group(i));
        }
        for i in rest..end {
            if respawn {
                self.end_respawn(i, obs.row(i), terminated.row(i), truncated.row(i));
            } else if apart {
                self.end_apart(i, obs.row(i), terminated.row(i), truncated.row(i));
            } else if terminated.get(i) | truncated.get(i) != 0 {
                self.end(i, obs.row(i));
            }
        }
    }

    /// Steps groups of environments from first on, where they are small and their rows packed, and returns the first one that is left.
    #[inline(always)]
    fn run_groups(&mut self, first: usize, end: usize, columns: &Columns<E>) -> usize {
        if !is_small::<E>() || !columns.are_packed() {
            return first;
        }
        let mut next = first;
        while end - next >= GROUP {
            let (envs, rngs) = (memory::chunk(&mut self.envs, next), memory::chunk(&mut self.rngs, next));
            CURRENT.store(next as u32, Ordering::Relaxed);
            step_group(self.in_group, next, envs, rngs, columns);
            next += GROUP;
        }
        next
    }

    /// Ends those episodes of a group that are over, eight flags at a time.
    #[inline(always)]
    fn end_group(&mut self, i: usize, obs: Rows<E::Obs>, terminated: &[u8; GROUP], truncated: &mut [u8; GROUP]) {
        if u64::from_ne_bytes(*terminated) | u64::from_ne_bytes(*truncated) == 0 {
            return;
        }
        for k in 0..GROUP {
            if terminated[k] | truncated[k] != 0 {
                truncated[k] &= 1 - terminated[k];
                self.end(i + k, obs.row(i + k));
            }
        }
    }

    /// Writes the figures of environments after their steps.
    #[inline(never)]
    fn tell(&mut self, t: u32, first: usize, end: usize) {
        for i in first..end {
            CURRENT.store(i as u32, Ordering::Relaxed);
            self.told.fill(0.0);
            self.envs[i].tell(&mut self.told);
            write_figures(&mut self.figures, t, i, &self.told);
        }
    }

    /// Does what the autoreset mode says about environment i, whose episode has ended.
    #[inline(never)]
    fn end(&mut self, i: usize, obs: &mut [E::Obs]) {
        if self.mode != abi::AUTORESET_SAME_STEP {
            return self.set_waiting(i, true);
        }
        self.last.rows(0).row(i).copy_from_slice(obs);
        self.last.flush(0, i, i + 1);
        self.begin(i, obs);
    }

    /// Ends the episodes of those agents of environment i whose flags say so, and that of the environment with the last one.
    #[inline(never)]
    fn end_apart(&mut self, i: usize, obs: &mut [E::Obs], terminated: &mut [u8], truncated: &mut [u8]) {
        let (mut ended, mut left) = (false, 0);
        for (k, at) in self.agents.of(i).enumerate() {
            if self.agents.over[at] != 0 {
                (terminated[k], truncated[k]) = (0, 0);
            } else if terminated[k] | truncated[k] == 0 {
                left += 1;
            } else {
                self.agents.over[at] = 1;
                ended = true;
                let own = k * self.last.row..(k + 1) * self.last.row;
                self.last.rows(0).row(i)[own.clone()].copy_from_slice(&obs[own]);
                self.last.flush_agent(0, i, k);
            }
        }
        if ended && left == 0 {
            self.begin(i, obs);
        }
    }

    /// Puts the last observations of agents where they belong, and begins the environment's next episode where its own is over.
    #[inline(never)]
    fn end_respawn(&mut self, i: usize, obs: &mut [E::Obs], terminated: &[u8], truncated: &[u8]) {
        if self.agents.respawned(i, terminated, truncated) {
            return self.end(i, obs);
        }
        for k in (0..self.agents.count).filter(|&k| terminated[k] | truncated[k] != 0) {
            self.last.flush_agent(0, i, k);
        }
    }

    /// The step of an environment whose episode is over: a new episode under next-step autoreset, and nothing
    /// but the same observation where the host resets.
    #[inline(never)]
    fn rest(&mut self, t: u32, i: usize) {
        self.reward.rows(t).set(i, 0.0);
        self.terminated.rows(t).set(i, 0);
        self.truncated.rows(t).set(i, 0);
        if E::DISCOUNTED {
            self.discount.rows(t).set(i, 0.0);
        }
        self.told.fill(0.0);
        write_figures(&mut self.figures, t, i, &self.told);
        let obs = self.obs.rows(t + 1).row(i);
        if self.mode == abi::AUTORESET_NEXT_STEP {
            return self.begin(i, obs);
        }
        obs.copy_from_slice(&self.obs.fetch(t, i, i + 1).row(i).to_vec());
    }

    pub fn save(&self, i: usize) -> Option<Vec<u8>> {
        let mut data = Vec::with_capacity(ROOM);
        data.resize(HEAD, 0);
        if !self.envs[i].save(&mut data) {
            return None;
        }
        data.extend_from_slice(&(self.waiting[i] as u32).to_le_bytes());
        data.extend_from_slice(&self.rngs[i].state.to_le_bytes());
        if self.agents.apart {
            data.extend_from_slice(&self.agents.over[self.agents.of(i)]);
        }
        let bytes = (data.len() - HEAD) as u32;
        data[..4].copy_from_slice(&self.state_version.to_le_bytes());
        data[4..HEAD].copy_from_slice(&bytes.to_le_bytes());
        Some(data)
    }

    pub fn load(&mut self, i: usize, data: &[u8]) -> i32 {
        let tail = SAVED + if self.agents.apart { self.agents.count } else { 0 };
        if data.len() < HEAD + tail {
            return abi::STATUS_ARGUMENT;
        }
        let number = |at: usize| u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
        if number(0) != self.state_version {
            return abi::STATUS_VERSION;
        }
        let (own, rest) = data[HEAD..].split_at(data.len() - HEAD - tail);
        let (flags, mut state) = (number(data.len() - tail), [0; 8]);
        state.copy_from_slice(&rest[4..SAVED]);
        if number(4) as usize != data.len() - HEAD || flags > 1 || !self.envs[i].load(own) {
            return abi::STATUS_ARGUMENT;
        }
        self.set_waiting(i, flags == 1);
        self.rngs[i].state = u64::from_le_bytes(state);
        if self.agents.apart {
            let all = self.agents.of(i);
            self.agents.over[all].copy_from_slice(&rest[SAVED..]);
        }
        if self.agents.dynamic {
            self.ask(i);
        }
        abi::STATUS_OK
    }

    pub fn render(&self, i: usize) -> Option<String> {
        self.envs[i].render()
    }

    /// Draws environment i; None where it draws nothing.
    pub fn draw(&self, i: usize) -> Option<Vec<u8>> {
        let (width, height) = self.picture;
        if width == 0 {
            return None;
        }
        let mut rgb = vec![0; 3 * width as usize * height as usize];
        self.envs[i].draw(&mut Picture { rgb: &mut rgb, width, height });
        Some(rgb)
    }
}
