import { x402Client, x402HTTPClient } from '@x402/core/client'
import { decodePaymentResponseHeader } from '@x402/core/http'
import { toClientEvmSigner } from '@x402/evm'
import {
  BatchSettlementEvmScheme,
  InMemoryClientChannelStorage,
} from '@x402/evm/batch-settlement/client'
import { wrapFetchWithPayment } from '@x402/fetch'
import { createWalletClient, type Hex, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { sql } from '../../packages/server/src/database/sql.ts'
import {
  makeClaimerMemory,
  runClaimRound,
} from '../../packages/server/src/services/payments/channels/claimer.ts'
import { escrowAddress } from '../../packages/server/src/x402/channels/channel.ts'
import { channelEscrow } from '../../packages/server/src/x402/channels/contracts.ts'
import { type Asked, quote } from '../support/buyer.ts'
import { awaitMined, connectDevnet } from '../support/payer.ts'
import type { Json, TestService } from '../support/service.ts'

type Storage = InMemoryClientChannelStorage | object
type Options = {
  readonly key?: Hex
  readonly storage?: Storage
  readonly salt?: Hex
  readonly fetch?: typeof fetch
}

/** A buyer with the unmodified client of the scheme, which has no other way to pay. */
export type ChannelBuyer = Awaited<ReturnType<typeof makeChannelBuyer>>

export async function makeChannelBuyer(service: TestService, options: Options = {}) {
  const key = options.key ?? generatePrivateKey()
  const account = privateKeyToAccount(key)
  if (options.key === undefined) await service.running.devnet?.faucet(account.address, 20_000_000n)
  const storage = options.storage ?? new InMemoryClientChannelStorage()
  const scheme = new BatchSettlementEvmScheme(
    toClientEvmSigner(account, connectDevnet(service) as never),
    { storage, ...(options.salt && { salt: options.salt }) } as never,
  )
  const client = new x402Client().register('eip155:84532', scheme)
  const pay = wrapFetchWithPayment(options.fetch ?? fetch, client)
  const { url } = service.running
  /** Posts to a path and pays. */
  const post = async (
    path: string,
    body: object,
    own: Readonly<Record<string, string>> = {},
  ): Promise<{ status: number; body: Json; notice: Json; text: string }> => {
    const headers = { 'content-type': 'application/json', ...own }
    const reply = await pay(`${url}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    const text = await reply.text()
    const header = reply.headers.get('payment-response')
    const notice = header === null ? undefined : decodePaymentResponseHeader(header)
    return { status: reply.status, body: text === '' ? undefined : JSON.parse(text), notice, text }
  }
  return {
    key,
    account,
    address: account.address.toLowerCase(),
    storage,
    scheme,
    client,
    url,
    /** Sends a call of the channel contract as the payer. */
    call: async (functionName: string, args: readonly unknown[]): Promise<string> => {
      const chain = connectDevnet(service)
      await chain.setBalance({ address: account.address, value: 10n ** 20n })
      const rpcUrl = service.running.devnet?.rpcUrl
      const wallet = createWalletClient({ account, chain: baseSepolia, transport: http(rpcUrl) })
      const call = { address: escrowAddress, abi: channelEscrow.abi, functionName, args }
      const hash = await wallet.writeContract({ ...call, gas: 500_000n } as never)
      return (await awaitMined(chain, hash)).status
    },
    /** Signs the payment of a request by the client's own books, and sends nothing. */
    sign: async (asked: Asked): Promise<Readonly<Record<string, string>>> => {
      const wire = new x402HTTPClient(client)
      const required = await quote(service, asked)
      const offer = wire.getPaymentRequiredResponse(
        (name) => required.headers.get(name),
        required.body,
      )
      return wire.encodePaymentSignatureHeader(await wire.createPaymentPayload(offer))
    },
    post,
    list: (body: object) => post('/list', body),
  }
}

export type ChannelFacts = {
  readonly id: string
  readonly charged: string
  readonly balance: string
  readonly claimed: string
  readonly config: string
}

/** Reads the channels of a payer as the ledger's tables have them. */
export async function readChannels(service: TestService, payer: string): Promise<ChannelFacts[]> {
  const { chain } = service.running.service.tenants.system
  await chain.whenApplied(chain.head().height)
  return service.database.query<ChannelFacts>(sql`
    SELECT id, charged::text AS charged, balance::text AS balance, claimed::text AS claimed, config
    FROM system.channel WHERE config::jsonb ->> 'payer' = ${payer} ORDER BY id`)
}

/** Claims from all channels, as the end of the service does. */
export async function claimAll(service: TestService): Promise<void> {
  const { payments, log } = service.running.service
  for (const method of payments.ports.methods) {
    const { escrow } = method
    if (escrow === undefined) continue
    const ports = { ...payments.ports, log }
    await runClaimRound(ports, { ...method, escrow }, { memory: makeClaimerMemory(), isEnd: true })
  }
}
