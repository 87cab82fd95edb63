import {
  type Fields,
  makeMalformedFault,
  parseHex,
  parseObject,
  parseText,
  parseUint,
  refuseOtherKeys,
} from '../payment-fields.ts'
import { quoteIdCharsMax } from '../quote.ts'
import { formatPermitNonce, type UptoPayment } from './upto.ts'
import { uptoProxyAddress, uptoScheme } from './upto-terms.ts'

const at = 'payload.permit2Authorization'

/** Reads a payment of the scheme `upto`: anything that two readers could take differently is refused. */
export function readUptoPayment(fields: Fields): UptoPayment {
  const given = parseObject(fields.accepted, 'accepted')
  const network = parseText(given.network, 'accepted.network')
  if (!/^eip155:[1-9]\d{0,15}$/.test(network))
    throw makeMalformedFault('accepted.network', 'must be CAIP-2, such as eip155:8453')
  const accepted = {
    scheme: uptoScheme,
    network,
    amount: parseUint(given.amount, 'accepted.amount'),
    asset: parseHex(given.asset, 20, 'accepted.asset'),
    payTo: parseHex(given.payTo, 20, 'accepted.payTo'),
  }
  return {
    ...{ version: 2, network, scheme: 'upto', receiptForm: 'base64', accepted },
    quoteId: readQuoteId(given),
    ...readPermit(parseObject(fields.payload, 'payload'), accepted.asset),
  }
}

/** Without the quote, who reads the payment from the chain could fetch what it bought. */
function readQuoteId(given: Fields): string {
  const extra = parseObject(given.extra, 'accepted.extra')
  const quoteId = parseText(extra.quoteId, 'accepted.extra.quoteId')
  if (quoteId === '' || quoteId.length > quoteIdCharsMax)
    throw makeMalformedFault(
      'accepted.extra.quoteId',
      `must have 1 to ${quoteIdCharsMax} characters`,
    )
  return quoteId
}

function readPermit(payload: Fields, asset: string): Pick<UptoPayment, 'payload' | 'upto'> {
  refuseOtherKeys(payload, ['signature', 'permit2Authorization'], 'payload')
  const permit = parseObject(payload.permit2Authorization, at)
  refuseOtherKeys(permit, ['from', 'permitted', 'spender', 'nonce', 'deadline', 'witness'], at)
  const permitted = parseObject(permit.permitted, `${at}.permitted`)
  refuseOtherKeys(permitted, ['token', 'amount'], `${at}.permitted`)
  const witness = parseObject(permit.witness, `${at}.witness`)
  refuseOtherKeys(witness, ['to', 'facilitator', 'validAfter'], `${at}.witness`)
  requireSame(parseHex(permit.spender, 20, `${at}.spender`), uptoProxyAddress, 'spender')
  requireSame(parseHex(permitted.token, 20, `${at}.permitted.token`), asset, 'permitted.token')
  const amount = parseUint(permitted.amount, `${at}.permitted.amount`)
  return {
    payload: {
      from: parseHex(permit.from, 20, `${at}.from`),
      to: parseHex(witness.to, 20, `${at}.witness.to`),
      value: amount,
      validAfter: parseUint(witness.validAfter, `${at}.witness.validAfter`),
      validBefore: parseUint(permit.deadline, `${at}.deadline`),
      nonce: formatPermitNonce(parseUint(permit.nonce, `${at}.nonce`)),
      signature: parseHex(payload.signature, 65, 'payload.signature'),
    },
    upto: {
      permitted: amount,
      facilitator: parseHex(witness.facilitator, 20, `${at}.witness.facilitator`),
    },
  }
}

function requireSame(given: string, expected: string, field: string): void {
  if (given !== expected) throw makeMalformedFault(`${at}.${field}`, `must be ${expected}`)
}
