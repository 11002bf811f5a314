<?php
/**
 * Where the buyer lives, as far as the shop says that it knows.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/**
 * Unknown counts as required: only another state than California can make the notice unnecessary.
 */
final class Residence {

	/**
	 * The choices of the setting, by what is stored.
	 */
	public static function choices(): array {
		return array(
			''        => __( 'Not known: every order with a classed product goes through the notice', 'countersign-woocommerce' ),
			'billing' => __( 'In the state of the billing address', 'countersign-woocommerce' ),
		);
	}

	/**
	 * What the shop relies on if it chooses the billing address.
	 */
	public static function explanation(): string {
		return __( 'With the billing address, your shop relies on what the buyer typed there, which is not checked: ask your lawyer whether that is enough. A ZIP code or state of California in either address counts as not known.', 'countersign-woocommerce' );
	}

	/**
	 * The state where the buyer of an order lives.
	 *
	 * @param \WC_Order $order The order.
	 * @return string Two letters, or empty: not known.
	 */
	public static function of( $order ): string {
		list( $country, $state ) = Need::place( $order, 'billing' );
		if ( 'billing' !== Settings::get( 'residence' ) || 'US' !== $country || self::is_californian( $order ) ) {
			$state = '';
		}
		/**
		 * Filters where the buyer lives: what is not known is needed.
		 *
		 * @param string    $state Two letters, or empty: not known.
		 * @param \WC_Order $order The order; at the checkout one that is not stored, with addresses and customer alone.
		 */
		return (string) apply_filters( 'countersign_residence_state', $state, $order );
	}

	/**
	 * Whether an address of the order names California.
	 *
	 * @param \WC_Order $order The order.
	 */
	private static function is_californian( $order ): bool {
		$zips   = array( $order->get_billing_postcode(), $order->get_shipping_postcode() );
		$states = array_map( 'strtoupper', array( $order->get_billing_state(), $order->get_shipping_state() ) );
		// The ZIP codes of California begin with 900 to 961.
		return in_array( 'CA', $states, true ) || array() !== preg_grep( '/^\s*9(0[0-9]|[1-5][0-9]|6[01])/', $zips );
	}
}
