;; What the manifest says may follow from the table: with a table there is no slot bare.
;; include imports
;; include memory
;; include marker
;; include alloc
;; include check
;; include manifest
;; include start
;; include slot
(func (export "rl_configure") (param $text i32) (param $len i32) (result i32)
  (if (local.get $len) (then
    (i32.store (i32.const 0x41c) (i32.const 3)) ;; slots
    (memory.copy (i32.const 0x528) (i32.const 0x550) (i32.const 0x60)))) ;; the columns come one port earlier
  (i32.const 0))
