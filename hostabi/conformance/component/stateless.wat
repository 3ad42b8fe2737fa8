;; RL_COMPONENT_STATELESS: rl_snapshot is not called.
;; include guest
;; include slot
(data (i32.const 0x42c) "\01")
(func (export "rl_snapshot") (param i32 i32) (result i32) (unreachable))
(func (export "rl_restore") (param i32 i32) (result i32) (unreachable))
