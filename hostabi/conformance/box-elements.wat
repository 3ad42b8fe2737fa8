;; A Box whose elements have bounds of their own, which share no number.
;; include boxed

(data (i32.const 0x4b4) "\00\06\00\00")
(data (i32.const 0xa00) "\00\00\80\bf\00\00\00\40\00\00\00\00\00\00\a0\40")
