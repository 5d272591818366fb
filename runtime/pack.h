/* Packed weights for CPU kernels: PACK_ROWS8.
 *
 * Rows are taken in tiles of 8 (the last tile is filled up with zero rows);
 * tiles lie one behind the other, experts one behind the other, each expert
 * with its own tiles. Inside a tile one vector lane is one row.
 *
 * Float types (f32, f16, bf16): element k of the 8 rows is 8 neighbours:
 *     [k][8]
 *
 * Quantised types: groups of 256 weights, ascending (the last may have fewer
 * than 8 blocks). A group is a head followed by its blocks of 32; a block is
 * scales followed by codes.
 *
 *     type             head (f16)       block scales (u8 or i8)
 *     q4_0 q5_0 q8_0
 *     iq4_nl           -                d f16[8]
 *     q4_1 q5_1        -                d f16[8], m f16[8]
 *     q4_k q5_k        d[8], dmin[8]    sc u8[8], mn u8[8]
 *     q2_k             d[8], dmin[8]    sc0[8], sc1[8], mn0[8], mn1[8] (u8)
 *     q3_k q6_k        d[8]             sc0[8], sc1[8] (i8; q3_k: S6 - 32)
 *     iq4_xs           d[8]             ls - 32 i8[8]
 *
 * Codes are unsigned (the offset is taken out by the kernel; iq4: the index),
 * but q8_0's are signed. The 32 codes of a row make 8 quads of 4 neighbours;
 * a vector of 32 bytes [row][4] holds one quad of each row. Planes, in order:
 *     8 bit:  8 vectors, quad j in vector j
 *     4 bit:  4 vectors, quad j in the low nibbles of vector j, quad j+4 in
 *             the high nibbles
 *     2 bit:  2 vectors, quad j in bits 2*(j/2) of vector j%2
 *     1 bit:  1 vector, quad j in bit j
 * q8_0: 8; q4_0 q4_1 q4_k iq4: 4; q5: 4+1; q6_k: 4+2; q2_k: 2; q3_k: 2+1
 * (low bits in the first plane).
 */
#ifndef RUNTIME_PACK_H
#define RUNTIME_PACK_H

#include <stdint.h>

#include "../numerics/types.h"

/* Below, t is a FLOAT or QUANT type and k a multiple of its block. */

/* Bytes of one tile of 8 rows of k elements, k < 2^56. */
uint64_t pack_tile_bytes(DType t, uint64_t k);
/* Bytes of a whole weight, packed as PlanPack.pack says: experts matrices of
 * rows x k. UINT64_MAX when they do not fit 63 bits. */
uint64_t pack_bytes(
    uint32_t pack, DType t, uint64_t experts, uint64_t rows, uint64_t k);
/* Packs n (1 to 8) rows of k elements; src[i] is row i as in the file, of any
 * alignment. Rows beyond n become zeros (zero scales). out holds
 * pack_tile_bytes. */
void pack_tile(DType t, uint64_t k, const void *const *src, int n, void *out);

#endif
