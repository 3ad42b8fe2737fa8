;; A Box of two elements with the same bounds: what the policy draws is clipped, or squashed, into them.
;; include boxed

(data (i32.const 0x4a4) "\00\00\00\c0\00\00\00\3f")
(data (i32.const 0xa00) "\00\00\00\c0\00\00\00\c0\00\00\00\3f\00\00\00\3f")
