//! Components in Rust: a type, the trait [`Component`], one line `rl_component!`.
//!
//! ```no_run
//! use rlhost_env::component::{emit, Component, Message, Signal, Slot, Spec, Want};
//! use rlhost_env::{abi, rl_component, Config};
//!
//! struct Purse { sum: f64 }
//!
//! impl Component for Purse {
//!     const SPEC: Spec = Spec {
//!         name: "purse@1",
//!         signals: &[Signal { name: "trajectories", payload: "trajectory", doc: "as they came" }],
//!         slots: &[Slot { name: "on_trajectories", payload: "trajectory", doc: "full blocks", wants: &[Want::read("reward", abi::F32)] }],
//!     };
//!     fn new(_: &mut Config) -> Result<Self, String> { Ok(Purse { sum: 0.0 }) }
//!     fn handle(&mut self, _slot: usize, m: &Message) -> Result<(), String> {
//!         m.column(0).each(|r: f32| self.sum += r as f64);
//!         emit(0, m)
//!     }
//! }
//!
//! rl_component!(Purse);
//! ```
//!
//! It is built as an environment is. The macro exports the functions of component ABI v1.

use crate::author::{Config, Element};
use crate::component_abi::{
    self as abi, AnswerCall, ColumnBinding, ColumnDesc, ComponentMessage, ComponentSpec, Identity, PortDesc, RequestCall, RequestDesc,
};
use crate::memory;
pub use crate::state::{pack, unpack, State};
use core::cell::UnsafeCell;
use core::mem::size_of;
use std::sync::Mutex;

/// A component. Errors are texts for people; one of `handle` or `timer` ends the run.
pub trait Component: Sized {
    const SPEC: Spec;
    /// Whether `save` and `load` keep what it has seen.
    const SAVED: bool = false;
    /// What senders and receivers of payloads must agree on, by the names of the payloads: 64 bits, such as the beginning of a hash of a
    /// payload's description.
    const SCHEMAS: &'static [(&'static str, u64)] = &[];

    /// Makes the component, or says what is wrong with its table: "key: reason".
    fn new(config: &mut Config) -> Result<Self, String>;
    /// Is called before the first message, to declare metrics and begin timers.
    fn start(&mut self) -> Result<(), String> {
        Ok(())
    }
    /// Handles a message of a slot, by its place in SPEC.
    fn handle(&mut self, slot: usize, m: &Message) -> Result<(), String>;
    /// Is called when the time of a timer has come.
    fn timer(&mut self, _timer: i32) -> Result<(), String> {
        Ok(())
    }
    /// The requests that it answers.
    const REQUESTS: &'static [Request] = &[];
    /// Answers a request, by its place in REQUESTS, with JSON; see [`crate::quote`]. Lists and tables among the arguments are JSON texts.
    fn request(&mut self, _request: usize, _args: &mut Config) -> Result<String, String> {
        Err("there is no such request".to_string())
    }
    /// The questions that it asks others; the key `asks` of its table says who answers.
    const ASKS: &'static [Request] = &[];
    /// Gets the answer to a question of the function [`ask`], by the question's place in ASKS and the number that `ask` has returned: JSON, or
    /// why there is none.
    fn answered(&mut self, _ask: usize, _question: u32, _answer: Result<&str, Unanswered>) -> Result<(), String> {
        Ok(())
    }
    /// Is called before the component is saved at rest or replaced, to finish what it has begun; `resume` ends that. A component that has
    /// nothing under way between two calls needs neither.
    fn pause(&mut self) -> Result<(), String> {
        Ok(())
    }
    fn resume(&mut self) -> Result<(), String> {
        Ok(())
    }
    /// Is called last.
    fn stop(&mut self) -> Result<(), String> {
        Ok(())
    }
    /// All that `load` needs to go on, without what the table says.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }
    /// Takes a saved state; false if it is that of another version.
    fn load(&mut self, _from: &[u8]) -> bool {
        false
    }
}

/// What a component is called, and its ports.
pub struct Spec {
    /// name@version
    pub name: &'static str,
    pub signals: &'static [Signal],
    pub slots: &'static [Slot],
}

/// An output.
pub struct Signal {
    pub name: &'static str,
    pub payload: &'static str,
    pub doc: &'static str,
}

/// An input, and the columns that it looks at.
pub struct Slot {
    pub name: &'static str,
    pub payload: &'static str,
    pub doc: &'static str,
    pub wants: &'static [Want],
}

/// A question that others ask the component, or that it asks others, by its name.
pub struct Request {
    pub name: &'static str,
    /// such as "lr number, warm bool?"; the types are bool, integer, number, text, list, table and any
    pub args: &'static str,
    pub doc: &'static str,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Unanswered {
    /// component_abi::ANSWER_LATE and so on: the number of a code such as E123
    pub fault: u32,
    pub text: String,
    /// of an error of the other component, such as ValueError
    pub kind: String,
    /// where it happened
    pub place: String,
}

/// A column that a slot looks at.
pub struct Want {
    pub name: &'static str,
    /// abi::F32 and so on, 0 = any.
    pub dtype: u8,
    /// component_abi::COLUMN_WRITE, COLUMN_OPTIONAL
    pub flags: u32,
}

impl Slot {
    /// An input.
    pub const fn new(name: &'static str, payload: &'static str, doc: &'static str, wants: &'static [Want]) -> Slot {
        Slot { name, payload, doc, wants }
    }
}

impl Want {
    /// A column to read.
    pub const fn read(name: &'static str, dtype: u8) -> Want {
        Want { name, dtype, flags: 0 }
    }

    /// A column to read where the block has it; else its `is_there` is false.
    pub const fn optional(name: &'static str, dtype: u8) -> Want {
        Want { name, dtype, flags: abi::COLUMN_OPTIONAL }
    }

    /// A column to write; the wire must grant it.
    pub const fn write(name: &'static str, dtype: u8) -> Want {
        Want { name, dtype, flags: abi::COLUMN_WRITE }
    }
}

/// A message that a slot handles. Its columns are valid while `handle` runs.
pub struct Message<'a> {
    /// What the host says of it: block, t, split, inline and so on.
    pub fields: &'a ComponentMessage,
    columns: &'a [ColumnBinding],
}

impl Message<'_> {
    /// A column of the block, by its place in the slot's wants.
    pub fn column(&self, want: usize) -> Column {
        Column { binding: self.columns[want] }
    }

    /// A column of the block by its name, for a slot that wants at least one column, be it optional. To be written a wire must grant it.
    pub fn named(&self, name: &str, write: bool) -> Result<Column, String> {
        named(self.fields.block, name, write)
    }

    /// Keeps the message with its block beyond `handle`, until what is returned is dropped.
    pub fn lease(&self) -> Result<Lease, String> {
        match unsafe { abi::lease(self.fields.block) } {
            0 => Ok(Lease { fields: *self.fields }),
            _ => Err("a block could not be leased".to_string()),
        }
    }
}

/// A message whose block is kept.
pub struct Lease {
    /// As those of the message.
    pub fields: ComponentMessage,
}

impl Lease {
    /// A column of the block by its name, to read.
    pub fn named(&self, name: &str) -> Result<Column, String> {
        named(self.fields.block, name, false)
    }

    /// Passes the message on, as the function `emit` does.
    pub fn emit(&self, signal: u32) -> Result<(), String> {
        offer(signal, &self.fields).map(|_| ())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        unsafe { abi::release(self.fields.block) };
    }
}

fn named(block: u32, name: &str, write: bool) -> Result<Column, String> {
    let mut binding = ColumnBinding::default();
    let access = if write { abi::COLUMN_WRITE } else { 0 };
    let to = (&mut binding as *mut ColumnBinding) as u32;
    match unsafe { abi::column(block, name.as_ptr() as u32, name.len() as u32, access, to) } {
        0 => Ok(Column { binding }),
        crate::abi::STATUS_UNSUPPORTED => Err(format!("the block has no column {name}")),
        crate::abi::STATUS_DENIED => Err(format!("no wire grants writing {name}")),
        _ => Err(format!("the column {name} cannot be looked at: the slot wants no column, or the block is gone")),
    }
}

/// Where a column of a block lies.
pub struct Column {
    pub binding: ColumnBinding,
}

impl Column {
    fn at<T: Element>(&self, t: u32, env: u32, agent: u32, i: u32) -> *mut T {
        let b = &self.binding;
        assert!(
            b.dtype == T::DTYPE && t < b.rows && env < b.envs && agent < b.agents && i < b.elems,
            "a column's element"
        );
        memory::at(b.ptr + t * b.stride_t + env * b.stride_env + agent * b.stride_agent + i * b.stride_elem).cast()
    }

    /// Whether the block has it, which only that of an optional want may lack.
    pub fn is_there(&self) -> bool {
        self.binding.ptr != 0
    }

    /// An element. It panics where there is none, or for another type.
    pub fn get<T: Element>(&self, t: u32, env: u32, agent: u32, i: u32) -> T {
        unsafe { self.at::<T>(t, env, agent, i).read() }
    }

    /// Sets an element of a column that the slot writes.
    pub fn set<T: Element>(&self, t: u32, env: u32, agent: u32, i: u32, value: T) {
        unsafe { self.at::<T>(t, env, agent, i).write(value) }
    }

    /// Calls a function with each element, row by row.
    pub fn each<T: Element>(&self, mut read: impl FnMut(T)) {
        self.places(|t, env, agent, i| read(self.get(t, env, agent, i)));
    }

    /// Replaces each element of a column that the slot writes.
    pub fn replace<T: Element>(&self, with: impl FnMut(T) -> T) {
        self.map(self, with);
    }

    /// Sets each element of a column that the slot writes to what a function makes of that of another column, which is as large.
    pub fn map<T: Element>(&self, from: &Column, mut with: impl FnMut(T) -> T) {
        self.places(|t, env, agent, i| self.set(t, env, agent, i, with(from.get(t, env, agent, i))));
    }

    fn places(&self, mut visit: impl FnMut(u32, u32, u32, u32)) {
        let b = &self.binding;
        for t in 0..b.rows {
            for env in 0..b.envs {
                for agent in 0..b.agents {
                    (0..b.elems).for_each(|i| visit(t, env, agent, i));
                }
            }
        }
    }
}

/// An episode of an agent that has ended: what a message of the payload episode says.
pub struct Episode {
    /// Sum of the raw rewards.
    pub total: f32,
    /// Env steps.
    pub length: u32,
    pub env: u32,
    pub agent: u16,
    pub terminated: bool,
}

impl Episode {
    pub fn of(m: &Message) -> Episode {
        let [a, b] = m.fields.inline;
        Episode {
            total: f32::from_bits(a as u32),
            length: (a >> 32) as u32,
            env: b as u32,
            agent: (b >> 49) as u16,
            terminated: b >> 32 & 1 != 0,
        }
    }
}

/// What a message of the payload act_request asks: that the actions of the component's policy be written into row `t` of the block.
/// The answer is the message itself, on a signal with the payload actions.
pub struct ActRequest {
    pub t: u32,
    /// What the column policy has where it acts, if there are several.
    pub policy: u8,
    /// The row behind the last step: there is no action to write.
    pub value_only: bool,
}

impl ActRequest {
    pub fn of(m: &Message) -> ActRequest {
        let flags = m.fields.inline[1];
        ActRequest { t: m.fields.t, policy: (flags >> 34) as u8, value_only: flags >> 32 & 1 != 0 }
    }

    /// Each (env, agent) whose action is asked for, in order: whom the column `active` has in the row, and, where the block has the
    /// column `policy`, whom the component's policy plays. None if `value_only`.
    pub fn turns<'a>(&self, active: &'a Column, policy: &'a Column) -> impl Iterator<Item = (u32, u32)> + 'a {
        let (t, own) = (self.t, self.policy);
        let (envs, agents) = (active.binding.envs, active.binding.agents);
        (0..if self.value_only { 0 } else { envs })
            .flat_map(move |env| (0..agents).map(move |agent| (env, agent)))
            .filter(move |&(env, agent)| active.get::<u8>(t, env, agent, 0) != 0)
            .filter(move |&(env, agent)| !policy.is_there() || policy.get::<u8>(t, env, agent, 0) == own)
    }
}

/// A number that the component reports; the pipeline must grant "metric".
#[derive(Clone, Copy, Default)]
pub struct Metric(u32);

impl Metric {
    /// Declares one of component_abi::METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM.
    pub fn new(kind: u32, name: &str) -> Metric {
        Metric(unsafe { abi::declare(kind, name.as_ptr() as u32, name.len() as u32) } as u32)
    }

    /// Gives it a value.
    pub fn report(self, value: f64) {
        unsafe { abi::report(self.0, value) }
    }
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// All receivers get it.
    Sent,
    /// They get it when they have room, and this component gets no message until then.
    Parked,
    /// A receiver does not get it, as its wire says, or there is none.
    Dropped,
}

/// Passes a message on, or sends one, on a signal, by its place in SPEC. What a full wire drops is no error.
pub fn emit(signal: u32, m: &Message) -> Result<(), String> {
    offer(signal, m.fields).map(|_| ())
}

/// Sends a message, that of a lease or one of one's own, and says what became of it.
pub fn offer(signal: u32, fields: &ComponentMessage) -> Result<Outcome, String> {
    match unsafe { abi::emit(signal, (fields as *const ComponentMessage) as u32) } {
        abi::OUTCOME_PARKED => Ok(Outcome::Parked),
        abi::OUTCOME_DROPPED => Ok(Outcome::Dropped),
        0.. => Ok(Outcome::Sent), // of a later version
        _ => Err("a message was not accepted: its block was released, or there were too many".to_string()),
    }
}

/// Makes `timer` be called after nanoseconds, and then every so often unless that is 0. Returns the timer's number.
pub fn begin_timer(after: i64, every: i64) -> Result<i32, String> {
    match unsafe { abi::timer(after, every) } {
        id @ 0.. => Ok(id),
        _ => Err("a timer cannot begin: there are too many, or it has no time".to_string()),
    }
}

/// Ends a timer; false where that is over.
pub fn cancel_timer(timer: i32) -> bool {
    unsafe { abi::cancel(timer as u32) == 0 }
}

/// Asks a question of ASKS, with a JSON object, for an answer within nanoseconds, 0 = half a minute. It returns the question's number, and
/// `answered` is called later, once.
pub fn ask(ask: u32, args: &str, within: i64) -> Result<u32, String> {
    match unsafe { abi::ask(ask, args.as_ptr() as u32, args.len() as u32, within) } {
        crate::abi::STATUS_MEMORY => Err("too many questions have no answer yet".to_string()),
        number if number < 0 => Err("a question was not accepted".to_string()),
        number => Ok(number as u32),
    }
}

/// Asks the run to end at the next dataset boundary, for component_abi::STOP_FOR_OWN and so on; the pipeline must grant "stop".
pub fn stop_run(reason: u32) -> bool {
    unsafe { abi::stop(reason) == 0 }
}

/// Which instance this is, of which run.
#[derive(Clone, Debug, Default)]
pub struct Me {
    /// component[i] where there are several, else component
    pub name: String,
    pub index: u32,
    pub count: u32,
    /// of the run
    pub seed: u64,
    /// the run must be reproducible bit by bit
    pub synchronous: bool,
}

static ME: Mutex<Option<Me>> = Mutex::new(None);

/// Says which instance this is, from `start` on.
pub fn me() -> Me {
    ME.lock().map_or_else(|_| Me::default(), |me| me.clone().unwrap_or_default())
}

/// Sends a line to the host's log; the pipeline must grant "log". Levels are 0 debug, 1 info, 2 warning, 3 error.
pub fn log(level: u32, text: &str) {
    unsafe { abi::log(level, text.as_ptr() as u32, text.len() as u32) }
}

/// Text of the newest error, also of a panic.
static ERROR: Mutex<String> = Mutex::new(String::new());

fn fail(status: i32, text: String) -> i32 {
    if let Ok(mut error) = ERROR.lock() {
        *error = text;
    }
    status
}

fn status(result: Result<(), String>) -> i32 {
    result.map_or_else(|text| fail(crate::abi::STATUS_INTERNAL, text), |_| 0)
}

/// The one component of a module. Only `rl_component!` makes it.
pub struct Holder<C: Component>(UnsafeCell<Running<C>>);

// A guest has one thread, and the host makes one call at a time.
unsafe impl<C: Component> Sync for Holder<C> {}

impl<C: Component> Holder<C> {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Holder(UnsafeCell::new(Running { component: None }))
    }

    /// # Safety
    /// One call at a time, and no result is kept beyond its call.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn get(&self) -> &mut Running<C> {
        &mut *self.0.get()
    }
}

/// The functions that the host calls.
pub struct Running<C: Component> {
    component: Option<C>,
}

impl<C: Component> Running<C> {
    pub fn configure(&mut self, text: u32, len: u32) -> i32 {
        std::panic::set_hook(Box::new(|info| {
            fail(crate::abi::STATUS_INTERNAL, info.to_string());
        }));
        let mut config = Config::parse(&String::from_utf8_lossy(memory::bytes(text, len)));
        match C::new(&mut config).and_then(|made| config.check().map(|_| made)) {
            Ok(made) => {
                self.component = Some(made);
                0
            }
            Err(text) => fail(crate::abi::STATUS_CONFIG, key_first(&text)),
        }
    }

    pub fn manifest(&mut self, buf: u32, cap: u32) -> i32 {
        memory::give(&describe(&C::SPEC, C::SAVED, C::SCHEMAS, C::REQUESTS, C::ASKS), buf, cap)
    }

    pub fn start(&mut self, identity: u32, len: u32) -> i32 {
        if (len as usize) < size_of::<Identity>() {
            return crate::abi::STATUS_ARGUMENT;
        }
        // The host has put an identity there, and the name behind it.
        let id = unsafe { memory::at(identity).cast::<Identity>().read() };
        let name = String::from_utf8_lossy(memory::bytes(identity + id.name_at, id.name_len)).into_owned();
        if let Ok(mut me) = ME.lock() {
            *me = Some(Me { name, index: id.index, count: id.count, seed: id.seed, synchronous: id.synchronous != 0 });
        }
        self.with(|c| c.start())
    }

    pub fn pause(&mut self) -> i32 {
        self.with(|c| c.pause())
    }

    pub fn resume(&mut self) -> i32 {
        self.with(|c| c.resume())
    }

    pub fn stop(&mut self) -> i32 {
        self.with(|c| c.stop())
    }

    pub fn handle(&mut self, slot: u32, message: u32) -> i32 {
        let Some(spec) = C::SPEC.slots.get(slot as usize) else { return crate::abi::STATUS_ARGUMENT };
        // The host has put a message there, and as many bindings as the slot has columns.
        let fields = unsafe { &*memory::at(message).cast::<ComponentMessage>() };
        let columns = match spec.wants.len() {
            0 => &[],
            n => unsafe { core::slice::from_raw_parts(memory::at(fields.columns).cast::<ColumnBinding>(), n) },
        };
        self.with(|c| c.handle(slot as usize, &Message { fields, columns }))
    }

    pub fn timer(&mut self, timer: u32) -> i32 {
        self.with(|c| c.timer(timer as i32))
    }

    pub fn request(&mut self, request: u32, len: u32, buf: u32, cap: u32) -> i32 {
        if (len as usize) < size_of::<RequestCall>() {
            return crate::abi::STATUS_ARGUMENT;
        }
        // The host has put a call there, and the arguments behind it.
        let call = unsafe { memory::at(request).cast::<RequestCall>().read() };
        let mut args = Config::json(&String::from_utf8_lossy(memory::bytes(request + call.args_at, call.args_len)));
        let answer = self.component.as_mut().map(|c| c.request(call.request as usize, &mut args));
        match (answer, args.check_values()) {
            (None, _) => crate::abi::STATUS_STATE,
            (_, Err(text)) => fail(crate::abi::STATUS_ARGUMENT, text),
            (Some(Ok(reply)), _) => memory::give(reply.as_bytes(), buf, cap),
            (Some(Err(text)), _) => fail(crate::abi::STATUS_INTERNAL, text),
        }
    }

    pub fn answer(&mut self, answer: u32, len: u32) -> i32 {
        if (len as usize) < size_of::<AnswerCall>() {
            return crate::abi::STATUS_ARGUMENT;
        }
        // The host has put a call there, and the texts behind it.
        let call = unsafe { memory::at(answer).cast::<AnswerCall>().read() };
        let text = |at, n| String::from_utf8_lossy(memory::bytes(answer + at, n)).into_owned();
        let said = text(call.text_at, call.text_len);
        let unanswered = Unanswered {
            fault: call.fault,
            text: said.clone(),
            kind: text(call.type_at, call.type_len),
            place: text(call.place_at, call.place_len),
        };
        let came = if call.fault == 0 { Ok(said.as_str()) } else { Err(unanswered) };
        self.with(|c| c.answered(call.ask as usize, call.question, came))
    }

    pub fn snapshot(&mut self, buf: u32, cap: u32) -> i32 {
        self.component.as_ref().map_or(crate::abi::STATUS_STATE, |c| memory::give(&c.save(), buf, cap))
    }

    pub fn restore(&mut self, buf: u32, len: u32) -> i32 {
        if self.component.as_mut().is_some_and(|c| c.load(memory::bytes(buf, len))) {
            return 0;
        }
        fail(crate::abi::STATUS_VERSION, "the state is that of another version".to_string())
    }

    pub fn last_error(&self, buf: u32, cap: u32) -> i32 {
        ERROR.lock().map_or(0, |text| {
            let mut shown = text.as_bytes()[..text.len().min(cap.saturating_sub(1) as usize)].to_vec();
            shown.push(0);
            memory::give(&shown, buf, cap)
        })
    }

    pub fn alloc(&self, size: u32, align: u32) -> u32 {
        memory::donate(size, align)
    }

    pub fn free(&self, address: u32, size: u32) {
        memory::take_back(address, size)
    }

    fn with(&mut self, call: impl FnOnce(&mut C) -> Result<(), String>) -> i32 {
        self.component.as_mut().map_or(crate::abi::STATUS_STATE, |c| status(call(c)))
    }
}

/// Makes the host's "key: reason" of what Config says.
fn key_first(text: &str) -> String {
    match text.strip_prefix("unknown argument ") {
        Some(key) => format!("{key}: is not known"),
        None => text.strip_prefix("argument ").unwrap_or(text).to_string(),
    }
}

/// The manifest as the host reads it.
fn describe(spec: &Spec, saved: bool, schemas: &[(&str, u64)], requests: &[Request], asks: &[Request]) -> Vec<u8> {
    let mut strings = vec![0u8];
    let mut text = |s: &str| {
        if s.is_empty() {
            return 0;
        }
        let at = strings.len() as u32;
        strings.extend_from_slice(s.as_bytes());
        strings.push(0);
        at
    };
    let (name, version) = spec.name.split_once('@').unwrap_or((spec.name, ""));
    let mut records = Vec::new();
    let ports = spec.signals.iter().map(|s| (s.name, s.payload, s.doc, 0)).chain(
        spec.slots.iter().map(|s| (s.name, s.payload, s.doc, if s.wants.is_empty() { 0 } else { abi::PORT_BLOCKS })),
    );
    for (name, payload, doc, flags) in ports {
        let schema = schemas.iter().find(|(of, _)| *of == payload).map_or(0, |(_, schema)| *schema);
        let port =
            PortDesc { name: text(name), payload: text(payload), doc: text(doc), flags, schema, ..PortDesc::default() };
        records.extend_from_slice(memory::struct_bytes(&port));
    }
    let mut columns = 0;
    for (slot, s) in spec.slots.iter().enumerate() {
        for want in s.wants {
            let column = ColumnDesc {
                slot: slot as u32,
                name: text(want.name),
                flags: want.flags,
                dtype: want.dtype,
                ..ColumnDesc::default()
            };
            records.extend_from_slice(memory::struct_bytes(&column));
            columns += 1;
        }
    }
    for r in requests.iter().chain(asks) {
        let request =
            RequestDesc { name: text(r.name), doc: text(r.doc), args: text(r.args), ..RequestDesc::default() };
        records.extend_from_slice(memory::struct_bytes(&request));
    }
    let head = ComponentSpec {
        size: size_of::<ComponentSpec>() as u32,
        abi_major: abi::COMPONENT_ABI_MAJOR,
        abi_minor: abi::COMPONENT_ABI_MINOR,
        port_bytes: size_of::<PortDesc>() as u16,
        column_bytes: size_of::<ColumnDesc>() as u16,
        message_bytes: size_of::<ComponentMessage>() as u16,
        binding_bytes: size_of::<ColumnBinding>() as u16,
        signals: spec.signals.len() as u32,
        slots: spec.slots.len() as u32,
        columns,
        requests: requests.len() as u32,
        request_bytes: size_of::<RequestDesc>() as u32,
        asks: asks.len() as u32,
        flags: if saved { 0 } else { abi::COMPONENT_STATELESS },
        name: text(name),
        version: text(version),
        strings_at: (size_of::<ComponentSpec>() + records.len()) as u32,
        ..ComponentSpec::default()
    };
    let head = ComponentSpec { strings_len: strings.len() as u32, ..head };
    [memory::struct_bytes(&head), &records, &strings].concat()
}

/// Makes a module out of a type that implements `Component`: exports every function of component ABI v1.
#[macro_export]
macro_rules! rl_component {
    ($component:ty) => {
        static RL_GUEST: $crate::component::Holder<$component> = $crate::component::Holder::new();

        #[no_mangle]
        pub extern "C" fn rl_component_v1() {}

        #[no_mangle]
        pub extern "C" fn rl_sdk_rust() {} // for the words of messages

        $crate::rl_export! {
            rl_alloc => alloc(size: u32, align: u32) -> u32;
            rl_free => free(address: u32, size: u32) -> ();
            rl_configure => configure(text: u32, len: u32) -> i32;
            rl_manifest => manifest(buf: u32, cap: u32) -> i32;
            rl_start => start(identity: u32, len: u32) -> i32;
            rl_slot => handle(slot: u32, message: u32) -> i32;
            rl_timer => timer(timer: u32) -> i32;
            rl_request => request(request: u32, len: u32, buf: u32, cap: u32) -> i32;
            rl_answer => answer(answer: u32, len: u32) -> i32;
            rl_pause => pause() -> i32;
            rl_resume => resume() -> i32;
            rl_stop => stop() -> i32;
            rl_snapshot => snapshot(buf: u32, cap: u32) -> i32;
            rl_restore => restore(buf: u32, len: u32) -> i32;
            rl_last_error => last_error(buf: u32, cap: u32) -> i32;
        }
    };
}
