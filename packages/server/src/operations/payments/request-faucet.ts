import { Fault, makeInvalidFault } from '../../base/fault.ts'
import type { Operation } from '../operation.ts'

const amountDefault = 100_000_000n
const amountMax = 1_000_000_000n

export const requestFaucet: Operation<'requestFaucet', 'faucet'> = async (
  { service },
  { body },
) => {
  const { faucet } = service
  if (faucet === undefined)
    throw new Fault('ROUTE_NOT_FOUND', { message: 'The faucet is there only with --devnet' })
  const amount = body.amount === undefined ? amountDefault : BigInt(body.amount)
  if (amount <= 0n || amount > amountMax)
    throw makeInvalidFault('/amount', `must be 1 to ${amountMax}`)
  // The token refuses to mint to nobody.
  if (/^0x0+$/.test(body.address))
    throw makeInvalidFault('/address', 'must not be the zero address')
  return faucet(body.address, amount)
}
