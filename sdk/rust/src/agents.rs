//! The agents of environments.

use crate::author::{Element, Env, Spec, Step};
use core::cell::Cell;
use core::mem::size_of_val;

/// The agents of all environments.
pub struct Agents {
    pub count: usize,       // of an environment
    pub several: bool,      // tensors have a row for each
    pub dynamic: bool,      // they do not always act
    pub apart: bool,        // their episodes end apart
    pub respawn: bool,      // and the next begin at once
    pub kept: Vec<u8>,      // [envs, count], whose last observation the author has given, where they respawn
    pub acts: Vec<u8>,      // [envs, count], who acts
    pub over: Vec<u8>,      // [envs, count], whose episode has ended before its environment's
    pub results: Vec<Step>, // of one environment
}

impl Agents {
    pub fn new<E: Env>(spec: &Spec, envs: usize) -> Self {
        let (count, dynamic) = (spec.agents.max(1) as usize, is_dynamic::<E>(spec));
        Agents {
            count,
            several: per_agent::<E>(spec),
            dynamic,
            apart: spec.apart,
            respawn: spec.respawn,
            kept: vec![0; envs * count],
            acts: vec![1; envs * count],
            over: vec![0; envs * count],
            results: vec![Step::default(); count],
        }
    }

    /// Writes what a step was to each agent of an environment, and flags of each or of all.
    #[inline(never)]
    pub fn reward<E: Env>(&mut self, env: &E, step: Step, to: &mut [f32], terminated: &mut [u8], truncated: &mut [u8]) {
        self.results.fill(step);
        env.reward(&mut self.results);
        to.iter_mut().zip(&self.results).for_each(|(to, result)| *to = result.reward);
        let flags = if self.apart || self.respawn { &self.results[..] } else { core::slice::from_ref(&step) };
        for (k, result) in flags.iter().enumerate() {
            terminated[k] = result.terminated as u8;
            truncated[k] = (result.truncated && !result.terminated) as u8;
        }
    }

    /// Looks at the agents of environment i whose episodes have ended, and says whether the environment's own has: all flags are set,
    /// and no last observation is given. The last observations that are given are forgotten.
    pub fn respawned(&mut self, i: usize, terminated: &[u8], truncated: &[u8]) -> bool {
        let all = self.of(i);
        let (mut ended, mut given, mut missing) = (0, 0, None);
        for (k, kept) in self.kept[all].iter_mut().enumerate() {
            let over = terminated[k] | truncated[k];
            ended += over as usize;
            given += *kept as usize;
            if over != 0 && *kept == 0 {
                missing = missing.or(Some(k));
            }
            *kept = 0;
        }
        match missing {
            Some(k) if ended < self.count || given > 0 => {
                panic!("agent {k} of environment {i} has ended without its last observation: give it to last, then put the agent back")
            }
            found => found.is_some(),
        }
    }

    /// Those of environment i among all.
    pub fn of(&self, i: usize) -> core::ops::Range<usize> {
        i * self.count..(i + 1) * self.count
    }
}

/// Whether agents do not always act.
pub fn is_dynamic<E: Env>(spec: &Spec) -> bool {
    E::TURNS || spec.apart
}

/// Whether tensors have a row for each agent.
pub fn per_agent<E: Env>(spec: &Spec) -> bool {
    spec.agents > 1 || is_dynamic::<E>(spec)
}

/// Where the last observations of the environment that is stepped belong.
#[derive(Clone, Copy)]
pub struct Keep {
    pub rows: *mut u8, // of all its agents
    pub bytes: usize,  // of all rows
    pub agents: usize, // of an environment
    pub kept: *mut u8, // [agents]
}

thread_local! {
    /// Nothing out of a step, and where agents do not respawn.
    pub static KEEP: Cell<Option<Keep>> = const { Cell::new(None) };
}

/// Takes what obs shows of an agent as its last observation, in a step of an environment whose agents respawn, see `Spec::respawn`. obs
/// has the rows of all agents, as the step has.
pub fn last<T: Element>(agent: usize, obs: &[T]) {
    let keep = KEEP.get().expect("last is for Env::step, and for agents that respawn: see Spec::respawn");
    assert!(
        size_of_val(obs) == keep.bytes,
        "last: obs is {} bytes, want all that the step is given: {}",
        size_of_val(obs),
        keep.bytes
    );
    assert!(agent < keep.agents, "last: agent {agent} of {}", keep.agents);
    let row = keep.bytes / keep.agents;
    let from = obs.as_ptr().cast::<u8>().wrapping_add(agent * row);
    // The rows are the batch's, which takes none of them while it steps the environment.
    unsafe {
        core::ptr::copy_nonoverlapping(from, keep.rows.add(agent * row), row);
        *keep.kept.add(agent) = 1;
    }
}
