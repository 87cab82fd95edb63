import type { Config } from '../config/config.ts'
import type { Devnet } from '../devnet/devnet.ts'
import { startAnchoring } from './anchoring/start-anchoring.ts'
import type { Uses } from './call.ts'
import { openPaymentMethods, type PaymentMethods } from './payments/open-payment-methods.ts'
import { startPublishing } from './publishing/start-publishing.ts'
import { startWitnesses } from './witnesses/witnesses.ts'

/**
 * Opens the chains that money moves on, those that our own chain is anchored on and blocks are published on, and what
 * witnesses sign of it.
 */
export async function openOtherChains(
  config: Config,
  closers: (() => Promise<unknown>)[],
  {
    devnet,
    ...parts
  }: Uses<'database' | 'world' | 'log' | 'tenants'> & { readonly devnet: Devnet | undefined },
): Promise<
  Pick<PaymentMethods, 'methods' | 'gasKeys'> & Uses<'anchoring' | 'publishing' | 'witnesses'>
> {
  const { methods, gasKeys, close } = await openPaymentMethods(config, devnet, parts)
  closers.push(close)
  const anchoring = await startAnchoring(config, devnet, { ...parts, gasKeys })
  closers.push(() => Promise.all(anchoring.map((one) => one.stop())))
  const publishing = await startPublishing(config, devnet, {
    ...parts,
    keys: [
      ...gasKeys,
      ...anchoring.flatMap(({ network, place: { signer: address } }) =>
        address === undefined ? [] : [{ network, address, use: 'anchors' }],
      ),
    ],
  })
  closers.push(() => Promise.all(publishing.map((one) => one.stop())))
  const witnesses = startWitnesses(config, parts)
  closers.push(() => witnesses.stop())
  return { methods, gasKeys, anchoring, publishing, witnesses }
}
