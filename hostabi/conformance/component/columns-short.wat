;; Records of columns shorter than version 1 has them.
;; include guest
;; include slot
(data (i32.const 0x412) "\14")
