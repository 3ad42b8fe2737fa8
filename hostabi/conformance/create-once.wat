;; rl_create is called once in an instance.
;; include memory
;; include describe
;; include alloc
;; include bind
;; include reset
;; include step
(global $batches (mut i32) (i32.const 0))
(func (export "rl_create") (param $config i32) (param $len i32) (param $envs i32) (param $mode i32) (result i32)
  (if (global.get $batches) (then (unreachable)))
  (global.set $batches (i32.const 1))
  (i32.store (i32.const 0x2f00) (local.get $mode))
  (i32.store (i32.const 0x2f04) (local.get $envs))
  (i32.const 0))
