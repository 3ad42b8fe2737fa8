;; From rl_create on rl_alloc gives the same memory twice.
;; include memory
;; include describe
;; include bind
;; include reset
;; include step
;; Memory is given from the heap on and never taken back.
(func (export "rl_alloc") (param $size i32) (param $align i32) (result i32)
  (local $at i32)
  (if (global.get $created) (then (return (i32.const 0x100000))))
  (local.set $at (i32.and (i32.sub (i32.add (global.get $heap) (local.get $align)) (i32.const 1))
                          (i32.sub (i32.const 0) (local.get $align))))
  (global.set $heap (i32.add (local.get $at) (local.get $size)))
  (block $enough
    (loop $grow
      (br_if $enough (i32.ge_u (i32.shl (memory.size) (i32.const 16)) (global.get $heap)))
      (br_if $grow (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))
      (return (i32.const 0))))
  (local.get $at))
(func (export "rl_free") (param i32 i32))
(global $created (mut i32) (i32.const 0))
(func (export "rl_create") (param $config i32) (param $len i32) (param $envs i32) (param $mode i32) (result i32)
  (drop (memory.grow (i32.const 64)))
  (global.set $created (i32.const 1))
  (i32.store (i32.const 0x2f00) (local.get $mode))
  (i32.store (i32.const 0x2f04) (local.get $envs))
  (i32.const 0))
