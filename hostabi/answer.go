package hostabi

// AnswerFault says why a question has no answer.
type AnswerFault uint32

// Why a question has no answer: the numbers of the codes that users see, such as E122.
const (
	AnswerRefused  AnswerFault = 121 // the arguments do not fit, or the component does not answer that request any more
	AnswerRaised   AnswerFault = 122 // what answers it has failed: type, text and place are of its error
	AnswerLate     AnswerFault = 123 // it did not answer in time
	AnswerNoAnswer AnswerFault = 124 // the answer is no JSON, or too long
	AnswerLost     AnswerFault = 125 // it ended before it answered, or the answer was lost with a fault of the component that asks
	AnswerBusy     AnswerFault = 72  // it has too many questions to answer
)
