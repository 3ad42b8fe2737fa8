;; Each group has a reward of its own.
;; include groups
(data (i32.const 0x8c0) "\84\03") ;; role
(data (i32.const 0x8c8) "\03\00\00\00") ;; flags
