import { createHash } from 'node:crypto'
import type { Collection } from './readable.ts'

/**
 * The id of a collection that a paid write makes. Only this payment could have made the collection
 * whose definition has this number, so a later try of the same payment knows what an earlier one left.
 */
export function makePaidCollectionId(paymentId: string, number: number): string {
  const digest = createHash('sha256').update(`collection ${number} by ${paymentId}`).digest('hex')
  return `col_${digest.slice(0, 24)}`
}

export function isMadeBy(paymentId: string, { id, number }: Collection): boolean {
  return id === makePaidCollectionId(paymentId, number)
}
