;; Bounds of an element that are reversed.
;; include boxed

(data (i32.const 0x4b4) "\00\06\00\00")
(data (i32.const 0xa00) "\00\00\80\bf\00\00\00\40\00\00\00\00\00\00\a0\40")
(data (i32.const 0xa04) "\00\00\10\41") ;; the lower bound of the second is 9
