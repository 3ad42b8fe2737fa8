;; Keys outside of the string table.
;; include memory
;; include head
;; include tensors
;; include alloc
;; include create
;; include bind
;; include reset
;; include step
(func (export "rl_describe") (param $config i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (if (i32.ge_u (local.get $cap) (i32.const 0x908))
    (then
      (memory.copy (local.get $buf) (i32.const 0x400) (i32.const 128))
      (i64.store offset=128 (local.get $buf) (i64.load (i32.const 0xf00)))
      (memory.copy (i32.add (local.get $buf) (i32.const 136)) (i32.const 0x480) (i32.const 0x880))))
  (i32.const 0x908))
(data (i32.const 0x400) "\88\00\00\00\01\00\01\00") ;; a head of 136 bytes, ABI 1.1
(data (i32.const 0x42c) "\08\08\00\00")
(data (i32.const 0xc0f) "left=0\0aright=1")
(data (i32.const 0xf00) "\0f\00\00\00")
(data (i32.const 0xf00) "\20\00\00\00")
