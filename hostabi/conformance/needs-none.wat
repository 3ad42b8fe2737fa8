;; A Box action without the need of actions: a guest may name what it needs of version 1, and does not have to.
;; include boxed

(data (i32.const 0x4a4) "\00\00\00\c0\00\00\00\3f")
(data (i32.const 0xa00) "\00\00\00\c0\00\00\00\c0\00\00\00\3f\00\00\00\3f")
(data (i32.const 0x410) "\00")
