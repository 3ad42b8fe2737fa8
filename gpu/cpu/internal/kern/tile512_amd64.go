package kern

// tile512 calls the AVX-512 kernel of one shape: up to 14 rows of one or two panels, up to 3 of four.
func tile512(args *gemmArgs, rows, width int) {
	switch width {
	case 4:
		switch rows {
		case 1:
			gemmAVX512_1x4(args)
		case 2:
			gemmAVX512_2x4(args)
		default:
			gemmAVX512_3x4(args)
		}
	case 2:
		tile512x2(args, rows)
	default:
		tile512x1(args, rows)
	}
}

func tile512x2(args *gemmArgs, rows int) {
	switch rows {
	case 1:
		gemmAVX512_1x2(args)
	case 2:
		gemmAVX512_2x2(args)
	case 3:
		gemmAVX512_3x2(args)
	case 4:
		gemmAVX512_4x2(args)
	case 5:
		gemmAVX512_5x2(args)
	case 6:
		gemmAVX512_6x2(args)
	case 7:
		gemmAVX512_7x2(args)
	case 8:
		gemmAVX512_8x2(args)
	case 9:
		gemmAVX512_9x2(args)
	case 10:
		gemmAVX512_10x2(args)
	case 11:
		gemmAVX512_11x2(args)
	case 12:
		gemmAVX512_12x2(args)
	case 13:
		gemmAVX512_13x2(args)
	default:
		gemmAVX512_14x2(args)
	}
}

func tile512x1(args *gemmArgs, rows int) {
	switch rows {
	case 1:
		gemmAVX512_1x1(args)
	case 2:
		gemmAVX512_2x1(args)
	case 3:
		gemmAVX512_3x1(args)
	case 4:
		gemmAVX512_4x1(args)
	case 5:
		gemmAVX512_5x1(args)
	case 6:
		gemmAVX512_6x1(args)
	case 7:
		gemmAVX512_7x1(args)
	case 8:
		gemmAVX512_8x1(args)
	case 9:
		gemmAVX512_9x1(args)
	case 10:
		gemmAVX512_10x1(args)
	case 11:
		gemmAVX512_11x1(args)
	case 12:
		gemmAVX512_12x1(args)
	case 13:
		gemmAVX512_13x1(args)
	default:
		gemmAVX512_14x1(args)
	}
}
