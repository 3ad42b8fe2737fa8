;; Lines of the configuration stand in the order of the bytes of their keys: B, a, a-b, a.b, a_b, é. The guest lists no arguments.
;; include memory
;; include head
;; include tensors
;; include alloc
;; include bind
;; include reset
;; include step
(func $given (param $config i32) (param $len i32) ;; the lines below, in their order
  (local $i i32)
  (if (i32.ne (local.get $len) (i32.const 31)) (then (unreachable)))
  (loop $next
    (if (i32.ne (i32.load8_u (i32.add (local.get $config) (local.get $i))) (i32.load8_u offset=0xe00 (local.get $i))) (then (unreachable)))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (i32.const 31)))))
(func (export "rl_describe") (param $config i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (if (local.get $len) (then (call $given (local.get $config) (local.get $len))))
  (if (i32.ge_u (local.get $cap) (i32.const 0x900))
    (then (memory.copy (local.get $buf) (i32.const 0x400) (i32.const 0x900))))
  (i32.const 0x900))
(func (export "rl_create") (param $config i32) (param $len i32) (param $envs i32) (param $mode i32) (result i32)
  (call $given (local.get $config) (local.get $len))
  (i32.store (i32.const 0x2f00) (local.get $mode))
  (i32.store (i32.const 0x2f04) (local.get $envs))
  (i32.const 0))
(data (i32.const 0xe00) "\42\3d\35\0a\61\3d\32\0a\61\2d\62\3d\36\0a\61\2e\62\3d\34\0a\61\5f\62\3d\31\0a\c3\a9\3d\33\0a")
