;; A guest that does not want to run on this host.
;; include guest
;; include slot
(func (export "rl_host") (param i32 i32) (result i32) (global.set $check (i32.const 42)) (i32.const -3))
