import { createHash } from 'node:crypto'

/** Files, each named by the hash of its bytes. */
export const plates = Array.from({ length: 9 }, (_, at) => {
  const bytes = Buffer.from(`plate ${at} ${'*'.repeat(at * 7)}`)
  return { bytes, sha256: createHash('sha256').update(bytes).digest('hex') }
})

/** Returns the plate of a number, counted from 1. */
export function getPlate(number: number) {
  const plate = plates[number - 1]
  if (plate === undefined) throw new Error(`there is no plate ${number}`)
  return plate
}
