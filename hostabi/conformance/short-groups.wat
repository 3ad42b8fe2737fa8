;; Records of groups shorter than version 1 has them, also where there are none.
;; include guest
(data (i32.const 0x41c) "\1c")
