import type { Operation } from '../operation.ts'

export const getSupportedPayments: Operation<
  'getSupportedPayments',
  'payments' | 'facilitating'
> = async ({ service }) => {
  const { facilitating, payments } = service
  const methods = facilitating?.listMethods() ?? payments.ports.methods
  const networks = methods.map(({ network }) => network)
  return {
    kinds: networks.flatMap((network) => [
      { x402Version: 2, scheme: 'exact', network: network.id },
      { x402Version: 1, scheme: 'exact', network: network.v1Name },
    ]),
    extensions: [],
    signers: Object.fromEntries(
      methods.map(({ network, facilitator }) => [
        network.id,
        [facilitating === undefined ? network.payTo : (facilitator.address ?? network.payTo)],
      ]),
    ),
  }
}
