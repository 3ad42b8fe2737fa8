//! Native tests. A guest works on a static block that stands for linear memory, so they take turns.

use crate::abi::{self, Binding};
use crate::author::{param_or, Arg, Config, Element, Env, Rng, Space, Spec, Step};
use crate::batch::{self, Batch};
use crate::memory;
use crate::state::{pack, unpack};
use core::marker::PhantomData;
use core::mem::offset_of;
use std::sync::{Mutex, MutexGuard};

/// Ends after `limit` steps: terminated if the last action was 1, else truncated. Observes its number of steps
/// and a random number drawn at reset.
struct Counter {
    limit: u32,
    steps: u32,
    luck: f32,
}

impl Counter {
    fn look(&self, obs: &mut [f32]) {
        obs.copy_from_slice(&[self.steps as f32, self.luck]);
    }
}

impl Env for Counter {
    type Action = i32;
    type Obs = f32;
    const MASKED: bool = true;
    const DISCOUNTED: bool = true;

    fn spec(_: &mut Config) -> Spec {
        Spec::new("counter@1", Space::discrete(2), Space::boxed(0.0, 0.0, &[2]))
            .arg(Arg::new("limit", abi::ARG_INTEGER, "3", "steps of an episode").within(1.0, 100.0))
            .arg(Arg { choices: vec!["a".into(), "b".into()], ..Arg::new("rules", abi::ARG_CHOICE, "", "") })
            .figure("steps", abi::TENSOR_MAX)
            .figure("luck", 0)
            .keys("left=0\nright=1")
    }

    fn new(config: &mut Config) -> Result<Self, String> {
        Ok(Counter { limit: config.int("limit", 3) as u32, steps: 0, luck: 0.0 })
    }

    fn reset(&mut self, rng: &mut Rng, obs: &mut [f32]) {
        self.steps = 0;
        self.luck = rng.uniform(0.0, 1.0);
        self.look(obs);
    }

    fn step(&mut self, _: &mut Rng, action: &[i32], obs: &mut [f32]) -> Step {
        self.steps += 1;
        self.look(obs);
        let over = self.steps == self.limit;
        Step { reward: action[0] as f32 + 1.0, terminated: over && action[0] == 1, truncated: over }
    }

    fn mask(&self, legal: &mut [u8]) {
        legal.copy_from_slice(&[1, (self.steps % 2) as u8]);
    }

    fn discount(&self) -> f32 {
        1.0 - self.steps as f32 / 8.0
    }

    fn tell(&self, figures: &mut [f32]) {
        figures.copy_from_slice(&[self.steps as f32, self.luck]);
    }

    fn save(&self, to: &mut Vec<u8>) -> bool {
        to.extend_from_slice(&self.steps.to_le_bytes());
        to.extend_from_slice(&self.luck.to_le_bytes());
        true
    }

    fn load(&mut self, from: &[u8]) -> bool {
        let Ok(bytes) = <[u8; 8]>::try_from(from) else { return false };
        self.steps = u32::from_le_bytes(bytes[..4].try_into().unwrap());
        self.luck = f32::from_le_bytes(bytes[4..].try_into().unwrap());
        true
    }
}

static TURN: Mutex<()> = Mutex::new(());

struct Rig {
    batch: Batch<Counter>,
    envs: u32,
    binds: Vec<Binding>,
    _turn: MutexGuard<'static, ()>,
}

fn rig(config: &str, envs: u32, mode: u32, columns: bool) -> Rig {
    let turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut batch = Batch::new(config, envs, mode).expect("created");
    let shapes = [(4, 1), (4, 2), (4, 1), (1, 1), (1, 1), (4, 2), (1, 2), (4, 1), (4, 1), (4, 1)];
    let mut ptr = 64;
    let mut binds = Vec::new();
    for (k, (size, elems)) in shapes.into_iter().enumerate() {
        let row = size * elems;
        let (stride_env, stride_elem) = if columns { (size, size * envs) } else { (row, size) };
        let stride_t = if k == 5 { 0 } else { row * envs };
        binds.push(Binding { ptr, stride_t, stride_env, stride_elem, ..Binding::default() });
        ptr += (row * envs * 16 + 63) & !63;
    }
    assert_eq!(batch.bind(&binds), abi::STATUS_OK);
    Rig { batch, envs, binds, _turn: turn }
}

impl Rig {
    fn at<T>(&self, k: usize, t: u32, env: u32, elem: u32) -> *mut T {
        let b = &self.binds[k];
        memory::at(b.ptr + t * b.stride_t + env * b.stride_env + elem * b.stride_elem).cast()
    }

    fn f32(&self, k: usize, t: u32, env: u32, elem: u32) -> f32 {
        unsafe { *self.at(k, t, env, elem) }
    }

    fn flags(&self, t: u32, env: u32) -> (u8, u8) {
        unsafe { (*self.at(3, t, env, 0), *self.at(4, t, env, 0)) }
    }

    fn act(&self, t: u32, env: u32, action: i32) {
        unsafe { *self.at(0, t, env, 0) = action }
    }

    fn step(&mut self, t: u32, action: i32) {
        (0..self.envs).for_each(|i| self.act(t, i, action));
        assert_eq!(self.batch.step(t, 0, self.envs as usize), abi::STATUS_OK);
    }

    fn reset(&mut self, t: u32, mask: Option<&[u8]>) {
        let seeds: Vec<u8> = (0..self.envs as u64).flat_map(|i| (7 + i).to_le_bytes()).collect();
        assert_eq!(self.batch.reset(t, mask, mask.is_none().then_some(&seeds)), abi::STATUS_OK);
    }
}

#[test]
fn rng_is_the_stream_of_the_other_languages() {
    let mut rng = Rng::new(42);
    assert_eq!(rng.next(), 0x57e1_faba_6510_7204);
    assert_eq!(rng.uniform(-1.0, 1.0), 0.911_493_421);
    assert_eq!(rng.below(1000), 486);
}

#[test]
fn config_names_the_key_that_is_wrong() {
    for (text, want) in
        [("limit=x\n", "argument limit: want a whole number"), ("limits=3\n", "unknown argument limits")]
    {
        let error = Batch::<Counter>::new(text, 1, abi::AUTORESET_SAME_STEP).err();
        assert_eq!(error, Some((abi::STATUS_CONFIG, want.to_string())));
    }
}

#[test]
fn create_refuses_what_cannot_be() {
    for (envs, mode, want) in
        [(0, 2, abi::STATUS_ARGUMENT), (1, 3, abi::STATUS_UNSUPPORTED), (1, 0, abi::STATUS_UNSUPPORTED)]
    {
        assert_eq!(Batch::<Counter>::new("", envs, mode).err().map(|e| e.0), Some(want));
    }
}

#[test]
fn description_has_a_table_of_tensors() {
    let data = batch::describe::<Counter>("").expect("described");
    let args = abi::SPEC_BYTES + 10 * abi::TENSOR_BYTES;
    let (strings, arg) = (args + 2 * abi::ARG_BYTES, |k: usize| -> abi::ArgDesc {
        unsafe { data[args + k * abi::ARG_BYTES..].as_ptr().cast::<abi::ArgDesc>().read_unaligned() }
    });
    let table = b"\0steps\0luck\0limit\0steps of an episode\x003\0rules\0a\nb\0counter\x001\0left=0\nright=1\0";
    assert_eq!(&data[strings..], table);
    assert_eq!(&data[40..52], [2, strings, table.len()].map(|n| (n as u32).to_le_bytes()).concat());
    let text = |at: u32| table[at as usize..].split(|c| *c == 0).next().unwrap();
    assert_eq!(
        (text(arg(0).name), text(arg(0).doc), text(arg(0).value)),
        (&b"limit"[..], &b"steps of an episode"[..], &b"3"[..])
    );
    let keys = u32::from_le_bytes(data[128..132].try_into().unwrap());
    assert_eq!(text(keys), b"left=0\nright=1");
    assert_eq!((arg(0).kind, arg(0).min, arg(0).max, arg(0).choices), (abi::ARG_INTEGER, 1.0, 100.0, 0));
    assert_eq!((arg(1).kind, text(arg(1).choices), arg(1).doc, arg(1).value), (abi::ARG_CHOICE, &b"a\nb"[..], 0, 0));
}

#[test]
fn same_step_keeps_the_last_observation_and_starts_anew() {
    for columns in [false, true] {
        let mut r = rig("limit=2\n", 3, abi::AUTORESET_SAME_STEP, columns);
        assert_eq!(r.batch.step(0, 0, 3), abi::STATUS_STATE);
        r.reset(0, None);
        let first = r.f32(1, 0, 1, 1);
        r.step(0, 0);
        r.step(1, 1);
        assert_eq!((r.f32(1, 2, 1, 0), r.flags(1, 1), r.f32(2, 1, 1, 0)), (0.0, (1, 0), 2.0));
        assert_eq!((r.f32(5, 0, 1, 0), r.f32(5, 0, 1, 1)), (2.0, first));
        assert_ne!(r.f32(1, 2, 1, 1), first);
    }
}

#[test]
fn next_step_spends_a_step_on_the_reset() {
    let mut r = rig("limit=2\n", 2, abi::AUTORESET_NEXT_STEP, true);
    r.reset(0, None);
    r.step(0, 0);
    r.step(1, 0);
    assert_eq!((r.f32(1, 2, 0, 0), r.flags(1, 0)), (2.0, (0, 1)));
    r.step(2, 1);
    assert_eq!((r.f32(1, 3, 0, 0), r.flags(2, 0), r.f32(2, 2, 0, 0)), (0.0, (0, 0), 0.0));
}

#[test]
fn disabled_waits_for_the_host() {
    for columns in [false, true] {
        let mut r = rig("limit=1\n", 2, abi::AUTORESET_DISABLED, columns);
        r.reset(0, None);
        r.step(0, 0);
        r.step(1, 0);
        assert_eq!((r.f32(1, 2, 0, 0), r.f32(1, 2, 0, 1)), (r.f32(1, 1, 0, 0), r.f32(1, 1, 0, 1)));
        assert_eq!((r.flags(1, 0), r.f32(2, 1, 0, 0)), ((0, 0), 0.0));
        r.reset(2, Some(&[0, 1]));
        r.step(2, 0);
        assert_eq!((r.f32(2, 2, 0, 0), r.f32(2, 2, 1, 0)), (0.0, 1.0));
    }
}

#[test]
fn a_bad_action_moves_nothing() {
    let mut r = rig("", 3, abi::AUTORESET_SAME_STEP, false);
    r.reset(0, None);
    let before = r.batch.save(0);
    (0..2).for_each(|i| r.act(0, i, 0));
    r.act(0, 2, -1);
    assert_eq!(r.batch.step(0, 0, 3), abi::STATUS_ACTION);
    assert_eq!(r.batch.save(0), before);
}

#[test]
fn a_saved_environment_has_the_same_future() {
    let mut r = rig("", 2, abi::AUTORESET_SAME_STEP, false);
    r.reset(0, None);
    r.step(0, 0);
    let saved = r.batch.save(0).expect("saved");
    assert_eq!(r.batch.load(1, &saved), abi::STATUS_OK);
    for t in 1..9 {
        r.step(t, 0);
        assert_eq!(r.f32(1, t + 1, 0, 1), r.f32(1, t + 1, 1, 1));
    }
    let mut flags = saved.clone();
    *flags.last_mut().expect("bytes") = 0;
    let at = flags.len() - 12;
    flags[at] = 7;
    for bad in [&saved[..5], &saved[..saved.len() - 1], &flags[..]] {
        assert_eq!(r.batch.load(0, bad), abi::STATUS_ARGUMENT);
    }
    assert_eq!(r.batch.load(0, &[0xff; 40]), abi::STATUS_VERSION);
}

#[test]
fn masks_follow_the_observation() {
    let mut r = rig("", 2, abi::AUTORESET_SAME_STEP, true);
    r.reset(0, None);
    r.step(0, 0);
    let mask = |t| unsafe { *r.at::<u8>(6, t, 1, 1) };
    assert_eq!((mask(0), mask(1)), (0, 1));
}

#[test]
fn all_is_legal_behind_an_end() {
    for (mode, want) in [(abi::AUTORESET_SAME_STEP, 0), (abi::AUTORESET_NEXT_STEP, 1), (abi::AUTORESET_DISABLED, 1)] {
        let mut r = rig("limit=2\n", 2, mode, true);
        r.reset(0, None);
        r.step(0, 0);
        r.step(1, 0);
        assert_eq!(unsafe { *r.at::<u8>(6, 2, 1, 1) }, want, "mode {mode}");
        if mode == abi::AUTORESET_NEXT_STEP {
            r.step(2, 0);
            assert_eq!(unsafe { *r.at::<u8>(6, 3, 1, 1) }, 0);
        }
    }
}

#[test]
fn the_discount_and_the_figures_are_those_of_the_step() {
    for mode in [abi::AUTORESET_SAME_STEP, abi::AUTORESET_NEXT_STEP] {
        let mut r = rig("limit=2\n", 3, mode, true);
        r.binds[9].ptr = 0; // a figure that the host does not want
        assert_eq!(r.batch.bind(&r.binds), abi::STATUS_OK);
        r.reset(0, None);
        r.step(0, 0);
        r.step(1, 0);
        assert_eq!((r.f32(7, 0, 2, 0), r.f32(7, 1, 2, 0)), (0.875, 0.75));
        assert_eq!((r.f32(8, 0, 2, 0), r.f32(8, 1, 2, 0)), (1.0, 2.0));
        r.step(2, 0);
        let want = if mode == abi::AUTORESET_NEXT_STEP { (0.0, 0.0) } else { (0.875, 1.0) };
        assert_eq!((r.f32(7, 2, 2, 0), r.f32(8, 2, 2, 0)), want);
    }
}

/// What a racer observes: how often it has acted, and who acts next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    acted: f32,
    next: u8,
}

impl Element for Seen {}

/// Three racers of whom one goes each step, by turns. Action 1 ends the episode of the one that takes it.
#[derive(Default)]
struct Racers {
    steps: u8,
    acted: [u8; 3],
    out: [u8; 3],
    last: [f32; 3],
}

impl Racers {
    fn next(&self) -> usize {
        (0..3).map(|k| (self.steps as usize + k) % 3).find(|&who| self.out[who] == 0).unwrap_or(0)
    }

    fn look(&self, obs: &mut [Seen]) {
        let next = self.next() as u8;
        obs.iter_mut().zip(self.acted).for_each(|(seen, acted)| *seen = Seen { acted: acted as f32, next });
    }
}

impl Env for Racers {
    type Action = i32;
    type Obs = Seen;
    const MASKED: bool = true;
    const TURNS: bool = true;

    fn spec(config: &mut Config) -> Spec {
        Spec::several("racers@1", Space::discrete(2))
            .observe::<f32>(offset_of!(Seen, acted), "acted", Space::boxed(0.0, 9.0, &[]))
            .observe::<u8>(offset_of!(Seen, next), "next", Space::boxed(0.0, 2.0, &[]))
            .agents(config.int("agents", 3) as u32)
            .apart()
    }

    fn new(_: &mut Config) -> Result<Self, String> {
        Ok(Racers::default())
    }

    fn reset(&mut self, _: &mut Rng, obs: &mut [Seen]) {
        *self = Racers::default();
        self.look(obs);
    }

    fn step(&mut self, _: &mut Rng, action: &[i32], obs: &mut [Seen]) -> Step {
        let who = self.next();
        self.acted[who] += 1;
        self.last = [0.0; 3];
        self.last[who] = who as f32 + 1.0;
        self.out[who] = (action[who] == 1) as u8;
        self.steps += 1;
        self.look(obs);
        Step::default()
    }

    fn reward(&self, results: &mut [Step]) {
        for (k, result) in results.iter_mut().enumerate() {
            *result = Step { reward: self.last[k], terminated: self.out[k] != 0, ..*result };
        }
    }

    fn active(&self, acts: &mut [u8]) {
        acts.fill(0);
        acts[self.next()] = 1;
    }

    fn mask(&self, legal: &mut [u8]) {
        legal.copy_from_slice(&[0, 1, 0, 1, 0, 1]);
    }

    fn save(&self, to: &mut Vec<u8>) -> bool {
        to.push(self.steps);
        to.extend_from_slice(&self.acted);
        to.extend_from_slice(&self.out);
        true
    }

    fn load(&mut self, from: &[u8]) -> bool {
        self.steps = from[0];
        self.acted.copy_from_slice(&from[1..4]);
        self.out.copy_from_slice(&from[4..7]);
        true
    }
}

// Tensors of the racers, whose second observation follows who acts.
const ACTIVE: usize = 7;
const NEXT: usize = 8;
const LAST_NEXT: usize = 9;

/// Two environments of racers. In columns the rows of an environment's agents do not lie together.
struct Race {
    batch: Batch<Racers>,
    binds: Vec<Binding>,
    _turn: MutexGuard<'static, ()>,
}

fn race(columns: bool) -> Race {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut batch = Batch::new("", 2, abi::AUTORESET_SAME_STEP).expect("created");
    let (mut ptr, mut binds) = (64, Vec::new());
    for (k, (size, elems)) in
        [(4, 1), (4, 1), (4, 1), (1, 1), (1, 1), (4, 1), (1, 2), (1, 1), (1, 1), (1, 1)].into_iter().enumerate()
    {
        let row = size * elems;
        let (stride_env, stride_agent, stride_elem) =
            if columns { (size, size * 2, size * 6) } else { (row * 3, row, size) };
        let stride_t = if k == 5 || k == LAST_NEXT { 0 } else { row * 6 };
        binds.push(Binding { ptr, stride_t, stride_env, stride_agent, stride_elem, ..Binding::default() });
        ptr += (row * 6 * 16 + 63) & !63;
    }
    assert_eq!(batch.bind(&binds), abi::STATUS_OK);
    assert_eq!(batch.reset(0, None, None), abi::STATUS_OK);
    Race { batch, binds, _turn }
}

impl Race {
    fn at<T>(&self, k: usize, t: u32, env: u32, agent: u32, elem: u32) -> *mut T {
        let b = &self.binds[k];
        memory::at(b.ptr + t * b.stride_t + env * b.stride_env + agent * b.stride_agent + elem * b.stride_elem).cast()
    }

    /// The first elements of all agents of an environment.
    fn read<T: Copy>(&self, k: usize, t: u32, env: u32) -> [T; 3] {
        [0, 1, 2].map(|agent| unsafe { *self.at::<T>(k, t, env, agent, 0) })
    }

    fn step(&mut self, t: u32, actions: [i32; 3]) {
        for env in 0..2 {
            actions.iter().enumerate().for_each(|(k, a)| unsafe { *self.at::<i32>(0, t, env, k as u32, 0) = *a });
        }
        assert_eq!(self.batch.step(t, 0, 2), abi::STATUS_OK);
    }
}

#[test]
fn agents_end_apart() {
    for columns in [false, true] {
        let mut r = race(columns);
        assert_eq!((r.read(ACTIVE, 0, 1), r.read(6, 0, 1)), ([1u8, 0, 0], [0u8, 1, 1]));
        r.step(0, [1, 99, -1]);
        assert_eq!((r.read(2, 0, 1), r.read(3, 0, 1)), ([1f32, 0.0, 0.0], [1u8, 0, 0]));
        assert_eq!(r.read::<u8>(ACTIVE, 1, 1), [0u8, 1, 0]);
        r.step(1, [0, 0, 0]);
        assert_eq!(r.read::<u8>(3, 1, 1), [0u8; 3]);
        let saved = r.batch.save(0).expect("saved");
        assert_eq!(r.batch.load(1, &saved), abi::STATUS_OK);
        r.step(2, [0, 99, 1]);
        r.step(3, [0, 1, 0]);
        for env in 0..2 {
            assert_eq!(r.read::<u8>(3, 3, env), [0u8, 1, 0]);
            assert_eq!((r.read(5, 0, env), r.read(LAST_NEXT, 0, env)), ([1f32, 2.0, 1.0], [1u8, 0, 1]));
            assert_eq!((r.read(1, 4, env), r.read(NEXT, 4, env)), ([0f32; 3], [0u8; 3]));
            assert_eq!(r.read::<u8>(ACTIVE, 4, env), [1u8, 0, 0]);
        }
        unsafe { *r.at::<i32>(0, 4, 1, 0, 0) = 2 };
        assert_eq!(r.batch.step(4, 0, 2), abi::STATUS_ACTION);
    }
}

#[test]
fn agents_have_limits() {
    let refused = |text: &str, mode| Batch::<Racers>::new(text, 2, mode).err().map(|e| e.0);
    assert_eq!(refused("agents=4097\n", abi::AUTORESET_SAME_STEP), Some(abi::STATUS_CONFIG));
    for mode in [abi::AUTORESET_NEXT_STEP, abi::AUTORESET_DISABLED] {
        assert_eq!(refused("", mode), Some(abi::STATUS_UNSUPPORTED));
    }
}

#[test]
fn a_state_is_its_numbers_one_behind_the_other() {
    let state = (1.5f64, (-2i32, 7u8), u64::MAX);
    let bytes = pack(&state);
    assert_eq!(bytes, [&1.5f64.to_le_bytes()[..], &(-2i32).to_le_bytes(), &[7], &[255; 8]].concat());
    let mut other = (0.0f64, (0i32, 0u8), 0u64);
    assert!(unpack(&mut other, &bytes));
    assert_eq!(other, state);
}

#[test]
fn a_state_of_another_size_is_left() {
    let mut state = (3u32, 4u16);
    for bytes in [&[][..], &[9; 5], &[9; 7]] {
        assert!(!unpack(&mut state, bytes));
        assert_eq!(state, (3, 4));
    }
}

#[test]
fn required_arguments_are_given() {
    let mut config = Config::parse("policy=rules\nempty=\n");
    assert_eq!(config.required("policy"), Ok("rules".to_string()));
    assert_eq!(config.required("empty"), Err("empty: is missing".to_string()));
    assert_eq!(config.required("other"), Err("other: is missing".to_string()));
    assert_eq!(config.check(), Ok(()));
}

/// Has the action that its argument names, and rewards the sum of its elements.
struct Chooser<A>(PhantomData<A>);

impl<A: Element + Into<f64>> Env for Chooser<A> {
    type Action = A;
    type Obs = f32;

    fn spec(config: &mut Config) -> Spec {
        let action = match config.text("action", "").as_str() {
            "multi_discrete" => Space::multi_discrete(&[3, 2]).from(5),
            "multi_binary" => Space::multi_binary(4),
            "start" => Space::discrete(3).from(-1),
            "bounds" => {
                Space { shape: vec![2], lows: vec![-1.0, 0.0], highs: vec![1.0, f32::INFINITY], ..Space::default() }
            }
            _ => Space::boxed(-1.0, 1.0, &[3]),
        };
        Spec::new("chooser@1", action, Space::boxed(0.0, 0.0, &[1]))
    }

    fn new(_: &mut Config) -> Result<Self, String> {
        Ok(Chooser(PhantomData))
    }

    fn reset(&mut self, _: &mut Rng, obs: &mut [f32]) {
        obs[0] = 0.0;
    }

    fn step(&mut self, _: &mut Rng, action: &[A], obs: &mut [f32]) -> Step {
        obs[0] = action.iter().map(|&a| a.into()).sum::<f64>() as f32;
        Step { reward: obs[0], ..Step::default() }
    }
}

/// A batch of three environments whose tensors have the sizes and elements that are listed, in rows or in columns, and two rows of
/// time. Where stands those of the last observations.
struct Choosers<E: Env> {
    batch: Batch<E>,
    binds: Vec<Binding>,
    _turn: MutexGuard<'static, ()>,
}

const CHOOSERS: u32 = 3;
const ACT: usize = 0; // the tensor of the first action

fn choosers<E: Env>(config: &str, mode: u32, tensors: &[(u32, u32)], columns: bool) -> Choosers<E> {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut batch = Batch::<E>::new(config, CHOOSERS, mode).expect("created");
    let (mut ptr, mut binds) = (64, Vec::new());
    for (k, &(size, elems)) in tensors.iter().enumerate() {
        let row = size * elems;
        let (stride_env, stride_elem) = if columns { (size, size * CHOOSERS) } else { (row, size) };
        let stride_t = if k == 5 { 0 } else { row * CHOOSERS };
        binds.push(Binding { ptr, stride_t, stride_env, stride_elem, ..Binding::default() });
        ptr += (row * CHOOSERS * 16 + 63) & !63;
    }
    assert_eq!(batch.bind(&binds[1..]), abi::STATUS_ARGUMENT);
    assert_eq!(batch.bind(&binds), abi::STATUS_OK);
    assert_eq!(batch.reset(0, None, None), abi::STATUS_OK);
    Choosers { batch, binds, _turn }
}

impl<E: Env> Choosers<E> {
    fn at<T>(&self, k: usize, t: u32, env: u32, elem: u32) -> *mut T {
        let b = &self.binds[k];
        memory::at(b.ptr + t * b.stride_t + env * b.stride_env + elem * b.stride_elem).cast()
    }

    fn set<T>(&self, k: usize, t: u32, env: u32, elem: u32, value: T) {
        unsafe { *self.at(k, t, env, elem) = value }
    }

    fn get<T: Copy>(&self, k: usize, t: u32, env: u32, elem: u32) -> T {
        unsafe { *self.at(k, t, env, elem) }
    }
}

/// Tensor k of a description.
fn tensor(data: &[u8], k: usize) -> abi::TensorDesc {
    let at = abi::SPEC_BYTES + k * abi::TENSOR_BYTES;
    unsafe { data[at..at + abi::TENSOR_BYTES].as_ptr().cast::<abi::TensorDesc>().read_unaligned() }
}

/// The path of tensor k.
fn path(data: &[u8], k: usize) -> &[u8] {
    let strings = u32::from_le_bytes(data[44..48].try_into().unwrap()) as usize;
    data[strings + tensor(data, k).path as usize..].split(|c| *c == 0).next().unwrap()
}

/// The numbers of each element that a tensor refers to, as their bits.
fn values(data: &[u8], d: &abi::TensorDesc, n: usize) -> Vec<u32> {
    let word = |k: usize| u32::from_le_bytes(data[d.values as usize + 4 * k..][..4].try_into().unwrap());
    (0..n).map(word).collect()
}

#[test]
fn each_discrete_space_is_described_and_stepped() {
    // the space, its elements, n, counts, start, flags; a value outside that of its second element, or its only one
    type Case = (&'static str, u32, u32, &'static [u32], i32, u32, i32);
    let cases: [Case; 3] = [
        ("multi_discrete", 2, 0, &[3, 2], 5, 0, 7),
        ("multi_binary", 4, 2, &[], 0, abi::TENSOR_BINARY, 2),
        ("start", 1, 3, &[], -1, 0, 2),
    ];
    for (name, elems, n, counts, start, flags, wrong) in cases {
        let config = format!("action={name}\n");
        let data = batch::describe::<Chooser<i32>>(&config).expect("described");
        let d = tensor(&data, 0);
        assert_eq!((d.role, d.dtype, d.n, d.start), (abi::ROLE_ACTION, abi::I32, n, start), "{name}");
        assert_eq!(d.flags, flags | abi::TENSOR_AT_T, "{name}");
        assert_eq!((d.rank, d.shape[0]), if elems == 1 { (0, 0) } else { (1, elems) }, "{name}");
        assert_eq!((d.values != 0, values(&data, &d, counts.len())), (!counts.is_empty(), counts.to_vec()), "{name}");
        for columns in [false, true] {
            let tensors = [(4, elems), (4, 1), (4, 1), (1, 1), (1, 1), (4, 1)];
            let mut r = choosers::<Chooser<i32>>(&config, abi::AUTORESET_SAME_STEP, &tensors, columns);
            (0..CHOOSERS).for_each(|i| (0..elems).for_each(|k| r.set(ACT, 0, i, k, start)));
            r.set(ACT, 0, 2, 0, start + 1);
            assert_eq!(r.batch.step(0, 0, 3), abi::STATUS_OK, "{name}");
            let sum = (elems as i32 * start) as f32;
            assert_eq!((r.get::<f32>(2, 0, 1, 0), r.get::<f32>(2, 0, 2, 0)), (sum, sum + 1.0), "{name}");
            for value in [wrong, start - 1] {
                r.set(ACT, 0, 1, (elems - 1).min(1), value);
                assert_eq!(r.batch.step(0, 0, 3), abi::STATUS_ACTION, "{name}: {value}");
                assert_eq!(r.batch.step(0, 2, 1), abi::STATUS_OK, "{name}: the others");
            }
        }
    }
}

#[test]
fn each_box_is_described_and_stepped() {
    for (name, elems) in [("box", 3), ("bounds", 2)] {
        let config = format!("action={name}\n");
        let data = batch::describe::<Chooser<f32>>(&config).expect("described");
        let d = tensor(&data, 0);
        assert_eq!((d.dtype, d.rank, d.shape[0], d.n, d.flags), (abi::F32, 1, elems, 0, abi::TENSOR_AT_T), "{name}");
        if name == "bounds" {
            let bounds = values(&data, &d, 4).into_iter().map(f32::from_bits).collect::<Vec<_>>();
            assert_eq!(bounds, [-1.0, 0.0, 1.0, f32::INFINITY]);
        } else {
            assert_eq!((d.low, d.high, d.values), (-1.0, 1.0, 0));
        }
        for columns in [false, true] {
            let tensors = [(4, elems), (4, 1), (4, 1), (1, 1), (1, 1), (4, 1)];
            let mut r = choosers::<Chooser<f32>>(&config, abi::AUTORESET_SAME_STEP, &tensors, columns);
            (0..CHOOSERS).for_each(|i| (0..elems).for_each(|k| r.set(ACT, 0, i, k, (i + k) as f32 / 4.0)));
            assert_eq!(r.batch.step(0, 0, 3), abi::STATUS_OK, "{name}");
            let sum = (0..elems).map(|k| (2 + k) as f32 / 4.0).sum::<f32>();
            assert_eq!(r.get::<f32>(2, 0, 2, 0), sum, "{name}, columns {columns}");
        }
    }
}

/// The actions of a panel.
#[derive(Clone, Copy, Default)]
struct Move {
    wheel: [f32; 2],
    gear: i32,
    lamps: [i32; 2],
    dial: [i32; 2],
}

impl Element for Move {}

/// Has several actions, of which its reward says what they were; an episode has two steps.
#[derive(Default)]
struct Panel {
    steps: u8,
}

impl Env for Panel {
    type Action = Move;
    type Obs = f32;
    const MASKED: bool = true;

    fn spec(config: &mut Config) -> Spec {
        let gear = if config.bool("misplaced", false) { 9 } else { offset_of!(Move, gear) };
        Spec::new("panel@1", Space::default(), Space::boxed(0.0, 2.0, &[1]))
            .act::<f32>(offset_of!(Move, wheel), "wheel", Space::boxed(-1.0, 1.0, &[2]))
            .act::<i32>(gear, "gear", Space::discrete(3).from(-1))
            .act::<i32>(offset_of!(Move, lamps), "lamps", Space::multi_binary(2))
            .act::<i32>(offset_of!(Move, dial), "dial/0", Space::multi_discrete(&[2, 3]))
    }

    fn new(_: &mut Config) -> Result<Self, String> {
        Ok(Panel::default())
    }

    fn reset(&mut self, _: &mut Rng, obs: &mut [f32]) {
        self.steps = 0;
        obs[0] = 0.0;
    }

    fn step(&mut self, _: &mut Rng, action: &[Move], obs: &mut [f32]) -> Step {
        self.steps += 1;
        obs[0] = self.steps as f32;
        let Move { wheel, gear, lamps, dial } = action[0];
        let sum = gear + 4 * lamps[0] + 8 * lamps[1] + 16 * dial[0] + 32 * dial[1];
        Step { reward: wheel[0] + 2.0 * wheel[1] + sum as f32, truncated: self.steps == 2, ..Step::default() }
    }

    fn mask(&self, legal: &mut [u8]) {
        legal.iter_mut().enumerate().for_each(|(k, legal)| *legal = ((k + self.steps as usize) % 3 != 0) as u8);
    }
}

/// Every action reaches the environment from its own tensor, each discrete one has its mask and is held to its values.
#[test]
fn several_actions_are_the_fields_of_a_struct() {
    const GEAR: usize = 6; // behind it lamps and dial, then the masks of the three
    let tensors = [(4, 2), (4, 1), (4, 1), (1, 1), (1, 1), (4, 1), (4, 1), (4, 2), (4, 2), (1, 3), (1, 4), (1, 5)];
    let data = batch::describe::<Panel>("").expect("described");
    for (k, elems) in [(0, 2), (GEAR, 1), (GEAR + 1, 2), (GEAR + 2, 2)] {
        let d = tensor(&data, k);
        assert_eq!((d.role, d.index as usize), (abi::ROLE_ACTION, k.saturating_sub(GEAR - 1)));
        assert_eq!((d.path != 0, d.shape[0].max(1)), (true, elems));
    }
    for (k, choices) in [3, 4, 5].into_iter().enumerate() {
        let d = tensor(&data, GEAR + 3 + k);
        assert_eq!((d.role, d.index as usize, d.pair as usize), (abi::ROLE_ACTION_MASK, k, k + 1));
        assert_eq!((path(&data, GEAR + 3 + k), d.shape[0]), (path(&data, GEAR + k), choices));
    }
    for columns in [false, true] {
        for mode in [abi::AUTORESET_SAME_STEP, abi::AUTORESET_NEXT_STEP] {
            let mut r = choosers::<Panel>("", mode, &tensors, columns);
            for i in 0..CHOOSERS {
                (r.set(0, 0, i, 0, 0.5f32), r.set(0, 0, i, 1, -0.25f32), r.set(GEAR, 0, i, 0, -1));
                (0..2).for_each(|k| [1, 2].iter().for_each(|j| r.set(GEAR + j, 0, i, k, 0)));
            }
            (r.set(GEAR, 0, 2, 0, 1), r.set(GEAR + 1, 0, 2, 1, 1));
            (r.set(GEAR + 2, 0, 2, 0, 1), r.set(GEAR + 2, 0, 2, 1, 2));
            for (k, elem, value) in [(0, 0, 0), (0, 2, 2), (1, 0, 3), (1, 3, 6), (2, 0, 7), (2, 4, 11)] {
                assert_eq!(r.get::<u8>(GEAR + 3 + k, 0, 2, elem), (value % 3 != 0) as u8, "value {value}");
            }
            assert_eq!(r.batch.step(0, 0, 3), abi::STATUS_OK);
            assert_eq!((r.get::<f32>(2, 0, 1, 0), r.get::<f32>(2, 0, 2, 0)), (-1.0, 1.0 + 8.0 + 16.0 + 64.0));
            for (k, elem, value) in [(0, 0, 2), (0, 0, -2), (1, 1, 2), (1, 0, -1), (2, 0, 2), (2, 1, 3)] {
                let was = r.get::<i32>(GEAR + k, 0, 1, elem);
                r.set(GEAR + k, 0, 1, elem, value);
                assert_eq!(r.batch.step(0, 0, 3), abi::STATUS_ACTION, "action {k} of {value}");
                assert_eq!(batch::current(), 1);
                r.set(GEAR + k, 0, 1, elem, was);
            }
            assert_eq!((r.batch.step(0, 0, 3), r.get::<u8>(4, 0, 1, 0)), (abi::STATUS_OK, 1));
            let all = (mode != abi::AUTORESET_SAME_STEP) as u8; // nobody acts behind an end
            assert_eq!((r.get::<u8>(GEAR + 3, 1, 1, 0), r.get::<u8>(GEAR + 5, 1, 1, 2)), (all, all));
        }
    }
    assert!(batch::describe::<Panel>("misplaced=true\n").is_err_and(|why| why.starts_with("action gear: no field")));
}

/// Walks as far as its first reset parameter says, 3 steps without one, and observes both of them.
struct Walker {
    params: [f32; 2],
    steps: u32,
}

impl Env for Walker {
    type Action = i32;
    type Obs = f32;

    fn spec(_: &mut Config) -> Spec {
        Spec::new("walker@1", Space::discrete(2), Space::boxed(0.0, 10.0, &[2]))
            .params(Space::boxed(1.0, 10.0, &[2]))
            .reset_info("length")
            .dt(0.5)
    }

    fn tell_reset(&self, infos: &mut [f32]) {
        infos[0] = self.params[0];
    }

    fn new(_: &mut Config) -> Result<Self, String> {
        Ok(Walker { params: [-1.0; 2], steps: 0 })
    }

    fn set_params(&mut self, params: &[f32]) {
        self.params.copy_from_slice(params)
    }

    fn reset(&mut self, _: &mut Rng, obs: &mut [f32]) {
        self.steps = 0;
        obs.copy_from_slice(&self.params);
    }

    fn step(&mut self, _: &mut Rng, _: &[i32], obs: &mut [f32]) -> Step {
        self.steps += 1;
        obs.copy_from_slice(&self.params);
        let length = param_or(&self.params, 0, 3.0) as u32;
        Step { terminated: self.steps == length, ..Step::default() }
    }
}

/// What stands in the reset parameters when an episode begins is what it is told, also where it begins by itself.
#[test]
fn episodes_are_told_their_reset_parameters() {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for columns in [false, true] {
        let mut batch = Batch::<Walker>::new("", 2, abi::AUTORESET_SAME_STEP).expect("created");
        let (mut ptr, mut binds) = (64, Vec::new());
        for (k, (size, elems)) in
            [(4, 1), (4, 2), (4, 1), (1, 1), (1, 1), (4, 2), (4, 2), (4, 1)].into_iter().enumerate()
        {
            let row = size * elems;
            let (stride_env, stride_elem) = if columns { (size, size * 2) } else { (row, size) };
            let stride_t = if k == 5 || k == 6 { 0 } else { row * 2 };
            binds.push(Binding { ptr, stride_t, stride_env, stride_elem, ..Binding::default() });
            ptr += (row * 2 * 16 + 63) & !63;
        }
        let place = |k: usize, t: u32, env: u32, elem: u32| -> *mut f32 {
            let b: &Binding = &binds[k];
            memory::at(b.ptr + t * b.stride_t + env * b.stride_env + elem * b.stride_elem).cast()
        };
        let set = |env: u32, a: f32, b: f32| unsafe { (*place(6, 0, env, 0), *place(6, 0, env, 1)) = (a, b) };
        let seen = |t: u32, env: u32| unsafe { (*place(1, t, env, 0), *place(1, t, env, 1)) };
        let told = |t: u32, env: u32| unsafe { *place(7, t, env, 0) };
        assert_eq!(batch.bind(&binds[..6]), abi::STATUS_ARGUMENT);
        assert_eq!(batch.bind(&binds), abi::STATUS_OK);
        (set(0, 2.0, 5.0), set(1, 3.0, 6.0));
        assert_eq!(batch.reset(0, None, None), abi::STATUS_OK);
        assert_eq!((seen(0, 0), seen(0, 1)), ((2.0, 5.0), (3.0, 6.0)));
        assert_eq!((told(0, 0), told(0, 1)), (2.0, 3.0));
        (set(0, 4.0, 7.0), set(1, 4.0, 8.0));
        for t in 0..2 {
            unsafe { (0..2).for_each(|env| *place(0, t, env, 0) = 0.0) };
            assert_eq!(batch.step(t, 0, 2), abi::STATUS_OK);
        }
        assert_eq!((seen(2, 0), seen(2, 1)), ((4.0, 7.0), (3.0, 6.0)));
        assert_eq!(told(2, 0), 4.0);
        let without = Binding { ptr: 0, ..binds[6] };
        assert_eq!(batch.bind(&[&binds[..6], &[without, Binding { ptr: 0, ..binds[7] }]].concat()), abi::STATUS_OK);
        assert_eq!(batch.reset(2, None, None), abi::STATUS_OK);
        let absent = |(a, b): (f32, f32)| a.is_nan() && b.is_nan();
        assert!(absent(seen(2, 0)) && absent(seen(2, 1)));
        for t in 2..5 {
            unsafe { (0..2).for_each(|env| *place(0, t, env, 0) = 0.0) };
            assert_eq!(batch.step(t, 0, 2), abi::STATUS_OK);
            // Its own default is 3 steps.
            assert_eq!(unsafe { *place(3, t, 0, 0).cast::<u8>() }, (t == 4) as u8);
        }
    }
}

#[test]
fn a_reset_parameter_that_nobody_sets_has_a_default() {
    let params = [f32::NAN, 0.0];
    assert_eq!((param_or(&params, 0, 7.0), param_or(&params, 1, 7.0)), (7.0, 0.0));
}

/// Draws how many steps its episode has, up to 4, and sets both flags in the last one. KNOWN is its OBS_ELEMS.
struct Brief<const KNOWN: usize> {
    left: u32,
    sum: f32,
}

impl<const KNOWN: usize> Env for Brief<KNOWN> {
    type Action = i32;
    type Obs = f32;
    const OBS_ELEMS: usize = KNOWN;

    fn spec(_: &mut Config) -> Spec {
        Spec::new("brief@1", Space::discrete(3), Space::boxed(0.0, 0.0, &[2]))
    }

    fn new(_: &mut Config) -> Result<Self, String> {
        Ok(Brief { left: 0, sum: 0.0 })
    }

    fn reset(&mut self, rng: &mut Rng, obs: &mut [f32]) {
        self.left = 1 + rng.below(4);
        obs.copy_from_slice(&[self.left as f32, self.sum]);
    }

    fn step(&mut self, rng: &mut Rng, action: &[i32], obs: &mut [f32]) -> Step {
        self.left -= 1;
        self.sum += rng.uniform(0.0, 1.0) * action[0] as f32 + batch::current() as f32;
        obs.copy_from_slice(&[self.left as f32, self.sum]);
        Step { reward: self.sum, terminated: self.left == 0, truncated: self.left == 0 }
    }
}

/// What 6 steps of 19 environments write, in the middle of which 13 take one more.
fn brief<const KNOWN: usize>(mode: u32, columns: bool) -> Vec<u8> {
    const ENVS: u32 = 19;
    let mut batch = Batch::<Brief<KNOWN>>::new("", ENVS, mode).expect("created");
    let (mut binds, mut ptr) = (Vec::new(), 64);
    for (k, (size, elems)) in [(4, 1), (4, 2), (4, 1), (1, 1), (1, 1), (4, 2)].into_iter().enumerate() {
        let row = size * elems;
        let (stride_env, stride_elem) = if columns { (size, size * ENVS) } else { (row, size) };
        let stride_t = if k == 5 { 0 } else { row * ENVS };
        binds.push(Binding { ptr, stride_t, stride_env, stride_elem, ..Binding::default() });
        ptr += (row * ENVS * 16 + 63) & !63;
    }
    unsafe { core::slice::from_raw_parts_mut(memory::at(0), ptr as usize) }.fill(0);
    assert_eq!(batch.bind(&binds), abi::STATUS_OK);
    let seeds: Vec<u8> = (0..ENVS as u64).flat_map(u64::to_le_bytes).collect();
    assert_eq!(batch.reset(0, None, Some(&seeds)), abi::STATUS_OK);
    for t in 0..7 {
        (0..ENVS).for_each(|i| unsafe { *memory::at(64 + 4 * (t * ENVS + i)).cast() = (t + i) % 3 });
        let (first, count) = if t == 3 { (5, 13) } else { (0, ENVS as usize) };
        assert_eq!(batch.step(t, first, count), abi::STATUS_OK);
    }
    let rows = unsafe { core::slice::from_raw_parts(memory::at(binds[1].ptr), (ptr - binds[1].ptr) as usize) };
    if !columns {
        return rows.to_vec();
    }
    let mut packed = Vec::new(); // of the observations alone
    for (t, i, k) in (0..8).flat_map(|t| (0..ENVS).flat_map(move |i| [(t, i, 0), (t, i, 1)])) {
        let at = (t * binds[1].stride_t + i * binds[1].stride_env + k * binds[1].stride_elem) as usize;
        packed.extend_from_slice(&rows[at..at + 4]);
    }
    packed
}

#[test]
fn groups_of_environments_step_as_single_ones_do() {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for mode in [abi::AUTORESET_SAME_STEP, abi::AUTORESET_NEXT_STEP, abi::AUTORESET_DISABLED] {
        let (single, group) = (brief::<0>(mode, false), brief::<2>(mode, false));
        assert_eq!(group, single, "mode {mode}");
        let spread = brief::<2>(mode, true); // which no group can be
        assert_eq!(spread, single[..spread.len()], "mode {mode}");
    }
}

#[test]
fn another_number_of_elements_than_the_space_has_is_named() {
    let error = batch::describe::<Brief<3>>("").err();
    let want = "observation: OBS_ELEMS is 3, but its space has 2 elements: make them equal";
    assert_eq!(error.as_deref(), Some(want));
}
