<?php
/**
 * The box on the page of an order, and what its buttons do.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/** For those who may edit orders. */
final class Order_Box {
	const ACTION     = 'countersign_order';
	const EVIDENCE   = 'countersign_evidence';
	const FORM       = 'countersign-order-form';
	const CAPABILITY = 'edit_shop_orders';

	/** @var int The order of the box, for the form that follows at the end of the page. */
	private static $order_id = 0;

	/** Add the box and its actions. */
	public static function register(): void {
		add_action( 'add_meta_boxes', array( self::class, 'add' ) );
		add_action( 'admin_footer', array( self::class, 'show_form' ) );
		add_action( 'admin_post_' . self::ACTION, array( self::class, 'act' ) );
		add_action( 'admin_post_' . self::EVIDENCE, array( self::class, 'download' ) );
		add_action( 'admin_notices', array( self::class, 'show_result' ) );
	}

	/** Add the box to the page of an order, whichever storage the shop has. */
	public static function add(): void {
		foreach ( array_unique( array( 'shop_order', wc_get_page_screen_id( 'shop-order' ) ) ) as $screen ) {
			add_meta_box( 'countersign', 'Countersign', array( self::class, 'show' ), $screen, 'side' );
		}
	}

	/**
	 * The box.
	 *
	 * @param \WP_Post|\WC_Order $shown The order, or its post.
	 */
	public static function show( $shown ): void {
		$order = $shown instanceof \WP_Post ? wc_get_order( $shown->ID ) : $shown;
		if ( ! $order instanceof \WC_Order || ! current_user_can( self::CAPABILITY ) ) {
			return;
		}
		if ( ! Orders::is_gated( $order ) ) {
			echo '<p>' . esc_html__( 'Nothing in this order has a class.', 'countersign-woocommerce' ) . '</p>';
			return;
		}
		$data           = Orders::data( $order );
		self::$order_id = $order->get_id();
		$state          = State_Machine::state( $order );
		$rows           = array(
			__( 'Decision', 'countersign-woocommerce' )        => Words::state( $state ),
			__( 'Reasons', 'countersign-woocommerce' )         => Words::reasons( $data['reasons'] ),
			__( 'Class', 'countersign-woocommerce' )           => Words::classes( Orders::classes( $order ) ),
			__( 'Session', 'countersign-woocommerce' )         => $data['session'],
			__( 'Acknowledgment', 'countersign-woocommerce' )  => $data['ack'],
			__( 'Buyer', 'countersign-woocommerce' )           => $data['buyer'],
			__( 'Clearance', 'countersign-woocommerce' )       => $data['clearance'],
			__( 'Manual override', 'countersign-woocommerce' ) => $data['override'],
			__( 'Shipped', 'countersign-woocommerce' )         => $data['shipped'] > 0 ? gmdate( 'Y-m-d H:i', $data['shipped'] ) . ' UTC' : '',
			__( 'Everything reported', 'countersign-woocommerce' ) => $data['closed'],
		);
		echo '<dl>';
		foreach ( array_filter( $rows ) as $name => $value ) {
			echo '<dt><strong>' . esc_html( $name ) . '</strong></dt><dd style="margin-inline-start:0;overflow-wrap:anywhere">' . esc_html( $value ) . '</dd>';
		}
		echo '</dl>';
		$advice = $order->has_status( array( 'completed', 'cancelled', 'refunded', 'trash' ) ) ? '' : Words::advice( $state );
		if ( '' !== $advice ) {
			echo '<p>' . esc_html( $advice ) . '</p>';
		}
		$obligations = array_filter( $data['obligations'], 'is_array' );
		if ( array() !== $obligations ) {
			echo '<p><strong>' . esc_html__( 'What has to be done with the parcel', 'countersign-woocommerce' ) . '</strong></p><ul>';
			foreach ( $obligations as $one ) {
				echo '<li>' . esc_html( Words::obligation( $one ) ) . '</li>';
			}
			echo '</ul>';
		}
		$kinds = '' === $data['ack'] . $data['clearance'] ? array() : array( 'dossier' );
		$kinds = '' === $data['ack'] ? $kinds : array_merge( $kinds, array( 'certificate' ) );
		foreach ( $kinds as $kind ) {
			$query = array( 'action' => self::EVIDENCE, 'order_id' => $order->get_id(), 'kind' => $kind );
			$url   = wp_nonce_url( add_query_arg( $query, admin_url( 'admin-post.php' ) ), self::EVIDENCE . $order->get_id() );
			$label = 'dossier' === $kind ? __( 'All evidence (ZIP)', 'countersign-woocommerce' ) : __( 'Certificate (PDF)', 'countersign-woocommerce' );
			echo '<p><a href="' . esc_url( $url ) . '">' . esc_html( $label ) . '</a></p>';
		}
		// The page of an order is a form itself, so these fields belong to one at the end of the page.
		if ( in_array( $state, array( 'open', 'undecided', 'cleared', 'overridden', 'refused' ), true ) ) {
			self::button( 'decide', __( 'Ask again', 'countersign-woocommerce' ) );
		}
		if ( self::can_be_sent( $order ) ) {
			$url = $order->get_checkout_payment_url();
			echo '<p><label>' . esc_html__( 'The buyer’s link', 'countersign-woocommerce' ) . ' <input type="text" readonly class="widefat" value="' . esc_attr( $url ) . '" onfocus="this.select()"></label></p>';
			self::button( 'send', __( 'E-mail the buyer the link', 'countersign-woocommerce' ) );
		}
		if ( 'cleared' === $state && '' === $data['closed'] ) {
			self::input( 'carrier', __( 'Carrier', 'countersign-woocommerce' ) );
			self::input( 'tracking_number', __( 'Tracking number', 'countersign-woocommerce' ) );
			if ( in_array( 'adult_signature', array_column( $obligations, 'type' ), true ) ) {
				echo '<p><label><input type="checkbox" form="' . esc_attr( self::FORM ) . '" name="adult_signature_obtained" value="1"> '
					. esc_html__( 'An adult has signed', 'countersign-woocommerce' ) . '</label></p>';
			}
			self::button( 'report', __( 'Report the fulfilment', 'countersign-woocommerce' ) );
		}
	}

	/**
	 * Whether its buyer can go through the notice: as long as the page for the payment has a way to it.
	 *
	 * @param \WC_Order $order The order.
	 */
	private static function can_be_sent( $order ): bool {
		return ! Orders::was_cleared( $order ) && $order->needs_payment();
	}

	/**
	 * A button of the form at the end of the page.
	 *
	 * @param string $name  What it does.
	 * @param string $label What it says.
	 */
	private static function button( string $name, string $label ): void {
		echo '<p><button class="button" form="' . esc_attr( self::FORM ) . '" name="do" value="' . esc_attr( $name ) . '">' . esc_html( $label ) . '</button></p>';
	}

	/**
	 * A field of the form at the end of the page.
	 *
	 * @param string $name  Its name.
	 * @param string $label What it says.
	 */
	private static function input( string $name, string $label ): void {
		echo '<p><label>' . esc_html( $label ) . ' <input type="text" maxlength="255" form="' . esc_attr( self::FORM ) . '" name="' . esc_attr( $name ) . '"></label></p>';
	}

	/** The form at the end of the page. */
	public static function show_form(): void {
		if ( 0 === self::$order_id ) {
			return;
		}
		echo '<form id="' . esc_attr( self::FORM ) . '" method="post" action="' . esc_url( admin_url( 'admin-post.php' ) ) . '">';
		echo '<input type="hidden" name="action" value="' . esc_attr( self::ACTION ) . '">';
		echo '<input type="hidden" name="order_id" value="' . esc_attr( (string) self::$order_id ) . '">';
		wp_nonce_field( self::ACTION . self::$order_id );
		echo '</form>';
	}

	/**
	 * The order of a request, for those who may edit it and come from its page.
	 *
	 * @param string $action The action, which its nonce is for.
	 */
	private static function order_of_request( string $action ) {
		$id = isset( $_REQUEST['order_id'] ) ? absint( wp_unslash( $_REQUEST['order_id'] ) ) : 0;
		if ( ! current_user_can( self::CAPABILITY ) ) {
			wp_die( esc_html__( 'You may not do this.', 'countersign-woocommerce' ), '', array( 'response' => 403 ) );
		}
		check_admin_referer( $action . $id );
		$order = wc_get_order( $id );
		if ( ! $order instanceof \WC_Order ) {
			wp_die( esc_html__( 'There is no such order.', 'countersign-woocommerce' ), '', array( 'response' => 404 ) );
		}
		return $order;
	}

	/** Ask again, or report. */
	public static function act(): void {
		$order  = self::order_of_request( self::ACTION );
		$wanted = isset( $_POST['do'] ) ? sanitize_key( wp_unslash( $_POST['do'] ) ) : ''; // phpcs:ignore WordPress.Security.NonceVerification.Missing -- checked above.
		$report = array(
			'carrier'                  => isset( $_POST['carrier'] ) ? sanitize_text_field( wp_unslash( $_POST['carrier'] ) ) : '', // phpcs:ignore WordPress.Security.NonceVerification.Missing
			'tracking_number'          => isset( $_POST['tracking_number'] ) ? sanitize_text_field( wp_unslash( $_POST['tracking_number'] ) ) : '', // phpcs:ignore WordPress.Security.NonceVerification.Missing
			'adult_signature_obtained' => ! empty( $_POST['adult_signature_obtained'] ), // phpcs:ignore WordPress.Security.NonceVerification.Missing
		);
		$result = '';
		try {
			Orders::locked(
				$order->get_id(),
				static function ( $order ) use ( $wanted, $report, &$result ) {
					$result = self::do_one( $order, $wanted, $report );
				}
			);
		} catch ( Service_Error $error ) {
			$result = $error->reason;
		}
		wp_safe_redirect( add_query_arg( 'countersign', $result, $order->get_edit_order_url() ) );
		exit;
	}

	/**
	 * Do what a button says.
	 *
	 * @param \WC_Order $order  The order, locked.
	 * @param string    $wanted decide, send or report.
	 * @param array     $report For report.
	 * @return string A code for the notice.
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	private static function do_one( $order, string $wanted, array $report ): string {
		if ( 'send' === $wanted ) {
			if ( self::can_be_sent( $order ) && '' !== (string) $order->get_billing_email() ) {
				Emails::send( 'notice', $order );
				return 'sent';
			}
			return 'not_sent';
		}
		if ( 'decide' === $wanted ) {
			Orders::ask_again( $order );
			return 'asked';
		}
		if ( 'report' !== $wanted || array() === array_filter( $report ) ) {
			return 'nothing_to_report';
		}
		Orders::decide( $order );
		if ( ! Orders::was_cleared( $order ) ) {
			return 'not_cleared';
		}
		if ( 'overridden' === Orders::state( $order ) ) {
			return 'overridden';
		}
		Orders::report( $order, $report );
		$order->add_order_note( __( 'Countersign: the fulfilment was reported.', 'countersign-woocommerce' ), 0, true );
		return 'reported';
	}

	/** The result of the last button. */
	public static function show_result(): void {
		$result = isset( $_GET['countersign'] ) ? sanitize_key( wp_unslash( $_GET['countersign'] ) ) : ''; // phpcs:ignore WordPress.Security.NonceVerification.Recommended -- shown, and nothing else.
		if ( '' === $result || ! current_user_can( self::CAPABILITY ) ) {
			return;
		}
		$done   = array(
			'asked'    => __( 'The service was asked: the decision is in the box.', 'countersign-woocommerce' ),
			'sent'     => __( 'The link was sent to the buyer.', 'countersign-woocommerce' ),
			'reported' => __( 'The fulfilment was reported.', 'countersign-woocommerce' ),
		);
		$failed = array(
			'not_sent'          => __( 'Nothing was sent: the order has no e-mail address, or needs no notice any more.', 'countersign-woocommerce' ),
			'nothing_to_report' => __( 'Nothing was reported: enter a carrier or a tracking number.', 'countersign-woocommerce' ),
			'overridden'        => __( 'Nothing was reported: the order has a manual override and is not cleared, so the service takes no report. Keep the proof of delivery.', 'countersign-woocommerce' ),
			'not_cleared'       => __( 'Nothing was reported: the order is not cleared. Do not ship it.', 'countersign-woocommerce' ),
		);
		/* translators: %s: what is wrong */
		$words = $done[ $result ] ?? $failed[ $result ] ?? sprintf( __( 'It does not work: %s.', 'countersign-woocommerce' ), Words::trouble( $result ) );
		echo '<div class="notice notice-' . ( isset( $done[ $result ] ) ? 'success' : 'error' ) . ' is-dismissible"><p>Countersign: ' . esc_html( $words ) . '</p></div>';
	}

	/** A file of the evidence, fetched with the key of the shop. */
	public static function download(): void {
		$order = self::order_of_request( self::EVIDENCE );
		$kind  = isset( $_GET['kind'] ) ? sanitize_key( wp_unslash( $_GET['kind'] ) ) : ''; // phpcs:ignore WordPress.Security.NonceVerification.Recommended -- checked above.
		$data  = Orders::data( $order );
		$order_of = 'dossier' === $kind && '' !== $data['clearance'];
		$about    = $order_of ? $data['clearance'] : $data['ack'];
		if ( '' === $about || ! in_array( $kind, array( 'certificate', 'dossier' ), true ) ) {
			wp_die( esc_html__( 'There is no such evidence.', 'countersign-woocommerce' ), '', array( 'response' => 404 ) );
		}
		try {
			$place = $order_of ? 'clearances' : 'acknowledgments';
			$file  = Client::download( "/v1/{$place}/" . rawurlencode( $about ) . "/{$kind}" );
		} catch ( Service_Error $error ) {
			wp_safe_redirect( add_query_arg( 'countersign', $error->reason, $order->get_edit_order_url() ) );
			exit;
		}
		$ending = 'certificate' === $kind ? 'pdf' : 'zip';
		nocache_headers();
		header( "Content-Type: application/{$ending}" );
		header( 'X-Content-Type-Options: nosniff' );
		header( 'Content-Disposition: attachment; filename="' . sanitize_file_name( "{$about}-{$kind}.{$ending}" ) . '"' );
		echo $file; // phpcs:ignore WordPress.Security.EscapeOutput.OutputNotEscaped -- a file.
		exit;
	}
}
