<?php
/**
 * Personal data: what the shop has of a buyer, what is erased, and what the privacy policy should say.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/** The evidence itself is at the service, whose operator erases it. */
final class Privacy {
	const PAGE_SIZE = 20;

	/** Add the hooks. */
	public static function register(): void {
		add_action( 'admin_init', array( self::class, 'add_policy' ) );
		foreach ( array( 'exporter' => 'export', 'eraser' => 'explain' ) as $kind => $act ) {
			add_filter(
				"wp_privacy_personal_data_{$kind}s",
				static function ( $all ) use ( $kind, $act ) {
					return $all + array( 'countersign' => array( "{$kind}_friendly_name" => 'Countersign', 'callback' => array( self::class, $act ) ) );
				},
				// Before that of WooCommerce, after whose eraser an order cannot be found by its buyer.
				5
			);
		}
		add_action( 'woocommerce_privacy_remove_order_personal_data', array( self::class, 'forget' ) );
	}

	/**
	 * The orders of a person that the service knows.
	 *
	 * @param string $email The person's address.
	 * @param int    $page  From 1.
	 * @return array The orders, and whether these are the last.
	 */
	private static function orders( string $email, int $page ): array {
		$found = wc_get_orders(
			array( 'customer' => $email, 'type' => 'shop_order', 'limit' => self::PAGE_SIZE, 'page' => $page )
		);
		$known = array_filter(
			$found,
			static function ( $order ) {
				return '' !== Orders::stored( $order )['reference'];
			}
		);
		return array( $known, count( $found ) < self::PAGE_SIZE );
	}

	/**
	 * The shop's data about a person.
	 *
	 * @param string $email The person's address.
	 * @param int    $page  From 1.
	 */
	public static function export( $email, $page = 1 ): array {
		list( $orders, $done ) = self::orders( (string) $email, (int) $page );
		$items                 = array();
		foreach ( $orders as $order ) {
			// Also what a copy has of another order.
			$data = Orders::stored( $order );
			$rows = array();
			foreach ( array(
				__( 'Order', 'countersign-woocommerce' )          => $order->get_order_number(),
				__( 'Decision', 'countersign-woocommerce' )       => Words::state( State_Machine::state( $order ) ),
				__( 'Reasons', 'countersign-woocommerce' )        => Words::reasons( $data['reasons'] ),
				__( 'ZIP code', 'countersign-woocommerce' )       => $data['zip'],
				__( 'State', 'countersign-woocommerce' )          => $data['residence'],
				__( 'Acknowledgment', 'countersign-woocommerce' ) => $data['ack'],
				__( 'Buyer', 'countersign-woocommerce' )          => $data['buyer'],
				__( 'Clearance', 'countersign-woocommerce' )      => $data['clearance'],
				__( 'Manual override', 'countersign-woocommerce' ) => $data['override'],
			) as $name => $value ) {
				if ( '' !== (string) $value ) {
					$rows[] = compact( 'name', 'value' );
				}
			}
			$items[] = array(
				'group_id'    => 'countersign',
				'group_label' => __( 'Legal notices and identity checks', 'countersign-woocommerce' ),
				'item_id'     => 'countersign-' . $order->get_id(),
				'data'        => $rows,
			);
		}
		return array( 'data' => $items, 'done' => $done );
	}

	/**
	 * Data kept when a person's data are erased, and why. The ZIP code goes with the order's address: see forget().
	 *
	 * @param string $email The person's address.
	 * @param int    $page  From 1.
	 */
	public static function explain( $email, $page = 1 ): array {
		list( $orders, $done ) = self::orders( (string) $email, (int) $page );
		$messages              = array();
		foreach ( $orders as $order ) {
			/* translators: %s: the number of an order */
			$messages[] = sprintf( __( 'Order %s keeps the ids and the receipt of its notice: the evidence at the Countersign service is found and proved with them. Ask the operator of the service to erase the evidence itself.', 'countersign-woocommerce' ), $order->get_order_number() );
		}
		return array( 'items_removed' => false, 'items_retained' => array() !== $messages, 'messages' => $messages, 'done' => $done );
	}

	/**
	 * WooCommerce has erased the personal data of an order.
	 *
	 * @param \WC_Order $order The order.
	 */
	public static function forget( $order ): void {
		$data = $order->get_meta( Orders::META );
		if ( is_array( $data ) ) {
			// A hash of the address could be guessed.
			$order->update_meta_data( Orders::META, array_merge( $data, array_fill_keys( array( 'zip', 'residence', 'subject', 'buyer' ), '' ) ) );
			$order->delete_meta_data( Orders::BUYER );
			$order->save();
		}
	}

	/** A suggestion for the shop's privacy policy. */
	public static function add_policy(): void {
		wp_add_privacy_policy_content(
			'Countersign',
			'<p>' . esc_html__( 'Some products need a legal notice that you initial, and sometimes an identity check, before you can pay for them. For such an order we send to our Countersign service: the class of the product, the state and the ZIP code of the delivery, the state where you live if we rely on your billing address, the number of the order, the address of the page where it is paid, and afterwards the carrier and the tracking number. On the service’s page you initial the notice and, where it is needed, show who you are. What the service keeps of you is in the privacy notice of that page.', 'countersign-woocommerce' ) . '</p>'
			. '<p>' . esc_html__( 'With your order we keep whether it was cleared, the ids of your notice and of your verification, the receipt of the notice, and the ZIP code that was checked. When the personal data of your order are erased, the ids and the receipt of the notice stay: the evidence is found and proved with them.', 'countersign-woocommerce' ) . '</p>'
		);
	}
}
