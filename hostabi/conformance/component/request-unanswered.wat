;; A call that returns without the answer is a fault. The request comes again, and a guest that never answers ends the run.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32) (i32.const 0))
(data (i32.const 0x690) "reward_request\00shaped_rewards\00shaped_reward")
(data (i32.const 0x464) "\ef") ;; the payload of the signal out
(data (i32.const 0x504) "\e0") ;; the payload of the slot written
(data (i32.const 0x59c) "\fe") ;; the column that it writes
