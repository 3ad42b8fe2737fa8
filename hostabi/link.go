package hostabi

// A link is the pair of message rings between the host and one native plugin. Messages whose Slot is below
// LinkControl are data: messages to the plugin go to the slot of that index in its manifest, messages from the plugin come
// from the signal whose index is Signal. The sender of a block keeps a claim on it until the receiver has
// acknowledged the message, by which time the receiver has its own claims on the blocks that it keeps; a block on a port
// marked OnLoan stays on loan to the sender of the request until it is answered.
//
// Acknowledgement: Ctl of every message, in both directions, is the number of data messages of the other direction that its
// sender has finished with, in total since the link began.
const (
	// LinkControl is the lowest Slot of the link's own messages.
	LinkControl uint16 = 0xFF00

	// LinkAck carries Ctl and nothing else.
	LinkAck uint16 = 0xFF01
	// LinkCredit: the block that Handle named has become free, as the receiver asked to be told. It may come late, when
	// the block is already in use again, and a second time after the death of a process.
	LinkCredit uint16 = 0xFF02
	// LinkBoundary, from a plugin: its learner has reached a dataset boundary and waits.
	LinkBoundary uint16 = 0xFF03
	// LinkBoundaryOver, to the plugin: it may continue.
	LinkBoundaryOver uint16 = 0xFF04
	// LinkStop, from a plugin: end the run at the next dataset boundary. Kind is a LinkStopReason.
	LinkStop uint16 = 0xFF05
	// LinkRun, to a plugin: the run has begun. Until it comes, or a data message, messages that a component posted to itself
	// in Start wait, so that a state can be restored before anything happens.
	LinkRun uint16 = 0xFF06

	// LinkEnvBind, to a worker of environments: T is the block's index, Inline[0] the number of its file,
	// Inline[1] its offset in it.
	LinkEnvBind uint16 = 0xFF20
	// LinkEnvReset: T is the row. Kind has LinkEnvMask and LinkEnvSeeds where the scratch area holds them.
	LinkEnvReset uint16 = 0xFF21
	// LinkEnvStep: T is the row.
	LinkEnvStep uint16 = 0xFF22
	// LinkEnvReply, from the worker, answers each of these three. Kind is minus the Status, 0 if all is well; if not,
	// the scratch area holds a text of Inline[0] bytes, Inline[1] is the index of the environment at fault plus 1,
	// and Split a LinkEnvFault.
	LinkEnvReply uint16 = 0xFF23
	// LinkEnvMetric, from the worker: T is the number of a name it has announced before, Inline[0] the bits of an f64,
	// Inline[1] the index of the environment that reports it plus 1, 0 if that is not known, Split the flag of TensorGather
	// by which the numbers of an episode become one.
	LinkEnvMetric uint16 = 0xFF24
	// LinkEnvStepAlone, to a worker whose EnvLoaded says alone: T is the row, Inline[0] the index of the one environment that makes
	// a step. Several environments may be in such steps, each in one; no other call comes meanwhile.
	LinkEnvStepAlone uint16 = 0xFF25
	// LinkEnvSteppedAlone, from the worker, answers LinkEnvStepAlone, in any order: Inline[1] is the index of the environment plus 1.
	// Kind, Split and Inline[0] are as in LinkEnvReply; the text begins T bytes into its room.
	LinkEnvSteppedAlone uint16 = 0xFF26

	// LinkPolicyLoad, to a program that computes a policy: the scratch area holds a policy version, whose number is Inline[0].
	LinkPolicyLoad uint16 = 0xFF30
	// LinkPolicyAct: the scratch area holds T rows to act on. Kind has bits of LinkPolicyAct.
	LinkPolicyAct uint16 = 0xFF31
	// LinkPolicyReply, from the program, answers both of these. Kind is 0 if all is well; if not, the scratch area holds a text of
	// Inline[0] bytes, and Inline[1] is the row at fault plus 1, 0 if it is none.
	LinkPolicyReply uint16 = 0xFF32
)

// Bits of Kind in LinkPolicyAct.
const (
	LinkPolicyGreedy = 1 // the most probable actions, not drawn ones
	LinkPolicyValue  = 2 // only values are wanted
)

// Bits of Kind in LinkEnvReset.
const (
	LinkEnvMask  = 1
	LinkEnvSeeds = 2
)

// LinkEnvFault is the kind of an environment's fault. After the first three the worker refuses every call except
// EnvState with renew or restore.
const (
	LinkEnvFaultTrap     = 1 // it trapped or failed
	LinkEnvFaultDeadline = 2 // it took too long
	LinkEnvFaultMemory   = 3 // it needs more memory than its limit
	LinkEnvFaultStatus   = 4 // it returned an error; 0 means the same
	LinkEnvFaultRefused  = 5 // the call, not the environment, is wrong: it is out of range or not offered
)

// LinkStopReason says why a plugin asks the run to end.
const (
	LinkStopOwn      = 0 // one of the component's own
	LinkStopReturn   = 1
	LinkStopEnvSteps = 2
	LinkStopWall     = 3
)

// LinkWindow is how many data messages a plugin may have sent that the host has not acknowledged.
const LinkWindow = 1024

// LinkCells is the number of cells of each ring of a link.
const LinkCells = 4096
